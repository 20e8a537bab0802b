"""Release a folder of files twice with one seed: in peace, and while executors are killed.

    python kill_executors.py FILES OUT

Executors are processes of their own. One is killed whenever two run, until 20 are gone; tasks are
slowed down, so that kills meet each of them. Prints how many were killed.
"""

import os
import signal
import sys
import threading
import time
import warnings
from pathlib import Path

from pyspark.sql import SparkSession

import tallyveil
from tallyveil import spark
from tallyveil.sampling.entropy import SeededNotPrivate
from tallyveil.spark import rows

KILLS = 20
CONF = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.executorEnv.PYTHONPATH": str(Path(tallyveil.__file__).parents[1]),
    "spark.deploy.maxExecutorRetries": "-1",
    "spark.task.maxFailures": "100",
    "spark.stage.maxConsecutiveAttempts": "100",
    "spark.io.encryption.enabled": "true",
    "spark.log.level": "OFF",
}


def list_executors():
    """List the executors of this process's own session."""
    parents, found = {}, []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                facts = (entry / "stat").read_text().rpartition(")")[2].split()
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            parents[int(entry.name)] = int(facts[1])
            if b"CoarseGrainedExecutorBackend" in command:
                found.append(int(entry.name))
    return [process for process in found if is_ours(process, parents)]


def is_ours(process, parents):
    while process in parents and process != os.getpid():
        process = parents[process]
    return process == os.getpid()


def slow(task):
    def work(batches, number, **arguments):
        for result in task(batches, number, **arguments):
            time.sleep(3)
            yield result

    return work


def kill(killed, stop):
    while not stop.is_set() and len(killed) < KILLS:
        running = list_executors()
        if len(running) > 1:
            os.kill(running[0], signal.SIGKILL)
            killed.append(running[0])
        stop.wait(2.5)


def main(files, out):
    os.environ |= {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    builder = SparkSession.builder.master("local-cluster[2,1,1024]").appName("kills")
    for name, value in CONF.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    options = {"count": "cases", "keep": "id", "upper": 50, "epsilon": 1}

    def release(name):
        frame = session.read.parquet(files).repartition(16, "id").sortWithinPartitions("id")
        spark.privatize(frame, **options, out=Path(out) / name, entropy=SeededNotPrivate(7))

    release("calm")
    rows.stage_rows, rows.draw_runs = slow(rows.stage_rows), slow(rows.draw_runs)
    killed, stop = [], threading.Event()
    killer = threading.Thread(target=kill, args=(killed, stop))
    killer.start()
    try:
        release("killed")
    finally:
        stop.set()
        killer.join()
    session.stop()
    print(len(killed))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(*sys.argv[1:])
