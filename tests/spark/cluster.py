"""A real Spark standalone cluster: one master and two workers, processes of their own."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

import tallyveil

NEED = "TALLYVEIL_NEED_SERVERS"
"""Set where a missing Java is a failure and not a reason to skip, as in `.ci/run`."""

QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Java starts sooner and works slower."""

WORKERS = 2
PATIENCE = 120


def find_missing():
    """What keeps this machine from running a cluster, in one line, or None."""
    try:
        import pyspark  # noqa: F401
    except ImportError:
        return "pyspark is missing: pip install 'tallyveil[spark]'"
    if shutil.which("java") is None:
        return "Java is missing: install Debian's package openjdk-17-jre-headless"
    return None


def require_cluster():
    missing = find_missing()
    if missing is not None:
        (pytest.fail if os.environ.get(NEED) else pytest.skip)(missing)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Cluster:
    """One master and two workers with one core each; what they log is kept in `root`."""

    def __init__(self, memory="1g"):
        self.root = Path(tempfile.mkdtemp(prefix="tv-spark-"))
        self.events = self.root / "events"
        self.events.mkdir()
        self.memory = memory
        self.port = free_port()
        self.address = f"spark://127.0.0.1:{self.port}"
        self.session = None
        self.workers = []
        self.master = self._start(
            "master", "--host", "127.0.0.1", "--port", self.port, "--webui-port", 0
        )
        self._wait_for(lambda: "Starting Spark master" in self.log("master"))
        for number in range(WORKERS):
            name = f"worker-{number}"
            options = ["--host", "127.0.0.1", "--cores", 1, "--memory", memory, "--webui-port", 0]
            work = ["--work-dir", self.root / name]
            self.workers.append(self._start(name, *options, *work, self.address))

    def _start(self, name, *options):
        import pyspark

        home = Path(pyspark.__file__).parent
        kind = name.partition("-")[0]
        with (self.root / f"{name}.log").open("wb") as log:
            return subprocess.Popen(
                [
                    str(home / "bin" / "spark-class"),
                    f"org.apache.spark.deploy.{kind}.{kind.title()}",
                    *map(str, options),
                ],
                env=self._environment(home),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _environment(self, home):
        return os.environ | {
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_DIRS": str(self.root / "local"),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": QUICK,
            "SPARK_MASTER_OPTS": "-Dspark.deploy.maxExecutorRetries=-1",
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": str(Path(tallyveil.__file__).parents[1]),
            "PYTHONWARNINGS": "",
        }

    def log(self, name):
        """What a process said so far."""
        return (self.root / f"{name}.log").read_text(errors="replace")

    def _wait_for(self, ready):
        deadline = time.monotonic() + PATIENCE
        while not ready():
            if time.monotonic() > deadline:
                raise RuntimeError(f"The cluster did not start: {self.log('master')[-2000:]}")
            time.sleep(0.1)

    def connect(self, **settings):
        """A session of this test process on the cluster."""
        from pyspark.sql import SparkSession

        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
        os.environ["PYSPARK_PYTHON"] = sys.executable
        builder = SparkSession.builder.master(self.address).appName("tallyveil tests")
        for name, value in (self.settings | settings).items():
            builder = builder.config(name, value)
        self.session = builder.getOrCreate()
        return self.session

    @property
    def settings(self):
        return {
            "spark.ui.enabled": "false",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.memory": "512m",
            "spark.executor.memory": "512m",
            "spark.executorEnv.PYTHONPATH": str(Path(tallyveil.__file__).parents[1]),
            "spark.driver.extraJavaOptions": QUICK,
            "spark.executor.extraJavaOptions": QUICK,
            "spark.ui.showConsoleProgress": "false",
            "spark.task.maxFailures": "100",
            "spark.speculation": "true",  # tasks that take long run twice
            "spark.speculation.interval": "100ms",
            "spark.speculation.multiplier": "1.1",
            "spark.speculation.quantile": "0.3",
            "spark.eventLog.enabled": "true",
            "spark.eventLog.compress": "false",
            "spark.eventLog.dir": self.events.as_uri(),
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.warehouse.dir": str(self.root / "warehouse"),
            "spark.log.level": "WARN",
        }

    def list_executors(self):
        """The process numbers of the executors that run now."""
        parents = {worker.pid for worker in self.workers}
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                command = (entry / "cmdline").read_bytes()
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            if b"CoarseGrainedExecutorBackend" in command and parent in parents:
                found.append(int(entry.name))
        return found

    def kill_executors(self):
        """End all executors at once, as a power cut would; gives how many there were."""
        running = self.list_executors()
        for process in running:
            os.kill(process, signal.SIGKILL)
        return len(running)

    def stop(self):
        """Stop everything and forget it."""
        if self.session is not None:
            self.session.stop()
        for process in (*self.workers, self.master):
            process.terminate()
        for process in (*self.workers, self.master):
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self.root, ignore_errors=True)
