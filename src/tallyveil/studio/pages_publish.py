"""Pages of a publisher: four steps that can be walked back and forth, and what was released."""

from __future__ import annotations

import io
import uuid
import zipfile
from fractions import Fraction
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tallyveil.release.folder import METHODOLOGY
from tallyveil.release.methods.registry import PLAIN_METHODS
from tallyveil.studio.choices import (
    CHOICES,
    FORM,
    OWN_MECHANISM,
    check_folder_name,
    read_choices,
    read_field,
)
from tallyveil.studio.guard import RELEASE_POLICY
from tallyveil.studio.state import Draft, Pages, Studio, post, read_confidence
from tallyveil.studio.uploads import TABLE_ENDINGS, find_ending
from tallyveil.studio.wording import PANELS, RefusedError
from tallyveil.studio.workers import Job
from tallyveil.untrusted import escape_controls, parse_json

STEPS = {
    "table": "Table",
    "protect": "What is protected",
    "accuracy": "Privacy and accuracy",
    "release": "Release",
}
IN_SIGHT = {
    *("count", "upper", "epsilon", "method", "hierarchy", "by", "keep", "id_column", "categories"),
    *("kind", "contributions", "epsilons", "properties", "loss"),
}
"""Choices with their own fields on the pages; the others are under "More choices"."""

MORE = {
    panel: [CHOICES[name] for name in names if name not in {*IN_SIGHT, *FORM}]
    for panel, names in PANELS.items()
}
ELSEWHERE = ("epsilon", "method", "epsilons", "loss", "properties", *FORM)
"""Choices that are made on other pages than the form of the second step."""

GONE = "The release is no longer in its folder."
CHANGED = (
    "The plan was changed after this page was opened, perhaps in another tab: reload it and read "
    "the plan again."
)


def publish_routes(studio: Studio) -> list[Route]:
    """Return the addresses of the publisher's pages."""
    steps, released = _Steps(studio), _Released(studio)
    return [
        Route("/publish", steps.begin),
        Route("/publish/{draft}/zip", released.download),
        Route("/publish/{draft}/page", released.show_page),
        Route("/publish/{draft}/report", released.show_report),
        Route("/tables", steps.upload, methods=["PUT"]),
        post("/tables/demo", steps.open_demo),
        post("/tables/folder", steps.open_from_folder),
        Route("/publish/{draft}/mechanism", steps.receive_mechanism, methods=["PUT"]),
        Route("/publish/{draft}/{step}", steps.show_step),
        post("/publish/{draft}/values", steps.show_values),
        post("/publish/{draft}/read", steps.read_again),
        post("/publish/{draft}/choices", steps.save_choices),
        post("/publish/{draft}/preview", steps.preview),
        post("/publish/{draft}/epsilon", steps.find_epsilon),
        post("/publish/{draft}/methods", steps.compare_methods),
        post("/publish/{draft}/simulate", steps.simulate),
        post("/publish/{draft}/release", steps.release),
        post("/publish/{draft}/again", steps.renew),
        post("/publish/{draft}/remove", steps.remove),
    ]


def _read_name(request: Request) -> str:
    """Return the name of an uploaded file, for display only."""
    name = unquote(request.headers.get("x-name", ""))[:500]
    shown = escape_controls(name.replace("\\", "/").rpartition("/")[2])
    if not shown:
        raise RefusedError(400, "The file has no name.")
    return shown


class _Steps(Pages):
    def _draft(self, request: Request) -> Draft:
        return self.studio.drafts.find(request.path_params["draft"])

    # -- the table ----------------------------------------------------------------------------

    async def begin(self, request: Request) -> Response:
        return await self.studio.show(
            request,
            "publish.html",
            tables=await self.studio.run(self.studio.list_tables),
            endings=",".join(TABLE_ENDINGS),
            chosen={},
        )

    async def upload(self, request: Request) -> Response:
        name = _read_name(request)
        ending = find_ending(name)
        if ending not in TABLE_ENDINGS:
            raise RefusedError(
                415, f"This is not a table. Known endings: {', '.join(TABLE_ENDINGS)}."
            )
        with self.studio.uploads.fill_folder() as private:
            form = _parse_form(request.headers.get("x-form"))
            table = private / f"table{ending}"
            await self.studio.uploads.receive(request.stream(), table)
            return JSONResponse(await self._open(table, private, name, form))

    async def open_from_folder(self, request: Request, message: dict[str, Any]) -> Any:
        form = _read_form(message.get("form", {}))
        tables = await self.studio.run(self.studio.list_tables)
        table = self.studio.find_in_folder(message.get("name"), tables)
        with self.studio.uploads.fill_folder() as private:
            return await self._open(table, private, table.name, form)

    async def open_demo(self, request: Request, message: dict[str, Any]) -> Any:
        with self.studio.uploads.fill_folder() as private:
            table = private / "cases.csv"
            await self.studio.ask(None, "publish.write_demo", table=str(table))
            return await self._open(table, private, table.name, {}, invented=True)

    async def _open(
        self, table: Path, private: Path, name: str, form: dict[str, Any], invented: bool = False
    ) -> dict[str, str]:
        draft = Draft(name, table, private, invented)
        self.studio.drafts.add(await self._look(None, draft, form))
        return {"next": f"/publish/{draft.id}/table"}

    async def _look(self, request: Request | None, draft: Draft, form: dict[str, Any]) -> Draft:
        """Read the columns of a table whose file is written like this."""
        facts = await self.studio.ask(
            request, "publish.look_at_table", table=str(draft.table), form=form
        )
        draft.kind, draft.rows, draft.columns = facts["kind"], facts["rows"], facts["columns"]
        others = {name: value for name, value in draft.choices.items() if name not in FORM}
        draft.choices = {**others, **form}
        return draft

    async def read_again(self, request: Request, message: dict[str, Any]) -> Any:
        """Read the table again, with other choices of how its file is written."""
        draft = await self._look(request, self._draft(request), _read_form(message))
        return {"next": f"/publish/{draft.id}/table"}

    async def show_values(self, request: Request, message: dict[str, Any]) -> Any:
        draft = self._draft(request)
        form = {name: value for name, value in draft.choices.items() if name in FORM}
        return await self.studio.ask(
            request, "publish.show_values", table=str(draft.table), form=form
        )

    async def receive_mechanism(self, request: Request) -> Response:
        """Receive the publisher's own mechanism; the library judges it when it plans."""
        draft = self._draft(request)
        ending = find_ending(_read_name(request))
        if ending not in (".json", ".csv"):
            raise RefusedError(415, "A mechanism is a .json file, or a matrix as .csv.")
        file = draft.private / f"mechanism-{uuid.uuid4().hex}{ending}"
        await self.studio.uploads.receive(request.stream(), file)
        draft.mechanism = file
        return JSONResponse({})

    async def remove(self, request: Request, message: dict[str, Any]) -> Any:
        self.studio.drafts.remove(request.path_params["draft"])
        return {"next": "/publish"}

    # -- the steps ----------------------------------------------------------------------------

    async def show_step(self, request: Request) -> Response:
        draft, step = self._draft(request), request.path_params["step"]
        if step not in STEPS:
            raise RefusedError(404, "There is no such page.")
        return await self.studio.show(
            request,
            f"step_{step}.html",
            draft=draft,
            steps=list(STEPS.items()),
            number=list(STEPS).index(step),
            more=MORE,
            methods=(*PLAIN_METHODS, OWN_MECHANISM),
            job=None if draft.job is None else draft.job.to_dict(),
        )

    async def save_choices(self, request: Request, message: dict[str, Any]) -> Any:
        return {"leaves": await self._leaves(self._save(request, message))}

    def _save(self, request: Request, message: dict[str, Any]) -> Draft:
        """Save what was chosen; choices that the message leaves out stay."""
        draft, sent = self._draft(request), message.get("choices", {})
        choices = read_choices(sent)
        dataset = read_field(message, "dataset", str | None, draft.dataset)
        whole_form = message.get("replace") is True  # what it leaves out was taken back
        others = {
            name: value
            for name, value in draft.choices.items()
            if name not in sent and (name in ELSEWHERE or not whole_form)
        }
        before, draft.choices = draft.plan, {**others, **choices}
        if draft.plan != before:
            draft.cost = None
        draft.dataset = dataset or None
        return draft

    async def preview(self, request: Request, message: dict[str, Any]) -> Any:
        return await self._plan(request, self._save(request, message), message)

    async def find_epsilon(self, request: Request, message: dict[str, Any]) -> Any:
        draft = self._save(request, message)
        within = read_field(message, "within", float)
        confidence = read_confidence(message)
        epsilon = await self._ask(
            request, draft, "publish.find_epsilon", confidence=confidence, within=within
        )
        draft.choices["epsilon"] = [epsilon]
        return {**await self._plan(request, draft, message), "chosen": epsilon}

    async def _plan(self, request: Request, draft: Draft, message: dict[str, Any]) -> Any:
        """Plan the release, and remember its cost for the budget on top of every page."""
        draft.cost, self.studio.current, plan = None, draft, draft.plan
        confidence = read_confidence(message)
        facts = await self._ask(request, draft, "publish.preview", confidence=confidence)
        cost = Fraction(facts.pop("cost"))
        if draft.plan == plan:  # not changed in another tab meanwhile
            draft.cost = cost
        return {**facts, "plan": plan, "leaves": await self._leaves(draft)}

    async def _leaves(self, draft: Draft) -> dict[str, str]:
        """Describe what the plan would leave of every budget."""
        budget = await self.studio.run(self.studio.read_budget, draft)
        return {account["dataset"]: account["after"] for account in budget["accounts"]}

    async def compare_methods(self, request: Request, message: dict[str, Any]) -> Any:
        return await self._ask(request, self._save(request, message), "publish.compare_methods")

    async def simulate(self, request: Request, message: dict[str, Any]) -> Any:
        return await self._ask(request, self._save(request, message), "publish.simulate")

    async def _ask(self, request: Request, draft: Draft, task: str, **arguments: Any) -> Any:
        arguments |= {"choices": dict(draft.choices), "place": draft.place(self.studio.ledger)}
        return await self.studio.ask(request, task, rows=draft.rows, **arguments)

    # -- the release --------------------------------------------------------------------------

    async def release(self, request: Request, message: dict[str, Any]) -> Any:
        """Begin the release, once: the same key is answered with the same job."""
        draft = self._save(request, message)
        if message.get("request") != draft.request:
            raise RefusedError(409, "This page is out of date: open the release step again.")
        if message.get("plan") != draft.plan:
            raise RefusedError(409, CHANGED)
        if self.studio.ledger is not None and draft.dataset is None:
            raise RefusedError(422, "Choose the dataset that pays: a ledger is open.")
        out = check_folder_name(message.get("out"))
        with draft.guard:
            job = draft.job
            if job is None or (job.state in ("cancelled", "refused") and not job.firm):
                draft.out, draft.report = out, message.get("report") is True
                job = draft.job = self._start(draft)
                draft.cost = None
        return {"job": job.id}

    def _start(self, draft: Draft) -> Job:
        arguments = {
            "choices": dict(draft.choices),
            "place": draft.place(self.studio.ledger, self.studio.folder),
            "shown": draft.name if draft.table.parent == draft.private else str(draft.table),
            "request": draft.request,
        }
        return self.studio.jobs.start("publish.publish", arguments)

    async def renew(self, request: Request, message: dict[str, Any]) -> Any:
        draft = self._draft(request)
        draft.renew()
        return {"next": f"/publish/{draft.id}/accuracy"}


def _parse_form(header: str | None) -> dict[str, Any]:
    """Read a header that says how the file that is sent is written."""
    try:
        return _read_form(parse_json(unquote(header).encode()) if header else {})
    except ValueError:
        raise RefusedError(400, "How the file is written cannot be read.") from None


def _read_form(data: Any) -> dict[str, Any]:
    choices = read_choices(data)
    if set(choices) - set(FORM):
        raise RefusedError(400, "Only how the file is written can be chosen here.")
    return choices


class _Released(Pages):
    def _find_folder(self, request: Request) -> Path:
        draft = self.studio.drafts.find(request.path_params["draft"])
        if draft.job is None or draft.job.state != "done":
            raise RefusedError(404, "Nothing was released here yet.")
        return Path(draft.job.result["folder"])

    async def download(self, request: Request) -> Response:
        folder = self._find_folder(request)
        content = await self.studio.run(_pack, folder)
        name = "".join(
            c if c.isascii() and (c.isalnum() or c in " .()-_") else "_" for c in folder.name
        )
        headers = {"content-disposition": f'attachment; filename="{name}.zip"'}
        return Response(content, media_type="application/zip", headers=headers)

    async def show_page(self, request: Request) -> Response:
        folder = self._find_folder(request)
        if not (folder / METHODOLOGY).is_file():  # of several levels, the least private one's
            folder = min(folder.glob("level-1-*"), default=folder)
        return await self._show_file(folder / METHODOLOGY)

    async def show_report(self, request: Request) -> Response:
        """Show the comparison with the truth to the publisher who asked for it."""
        folder = self._find_folder(request)
        return await self._show_file(folder.with_name(f"{folder.name} CONFIDENTIAL.html"))

    async def _show_file(self, file: Path) -> Response:
        try:
            content = await self.studio.run(file.read_bytes)
        except OSError:
            raise RefusedError(404, GONE) from None
        headers = {"content-security-policy": RELEASE_POLICY}
        return Response(content, media_type="text/html", headers=headers)


def _pack(folder: Path) -> bytes:
    """Return the files of a release as a zip."""
    packed = io.BytesIO()
    try:
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(folder.rglob("*")):
                if path.is_file():
                    archive.write(path, Path(folder.name, path.relative_to(folder)))
    except OSError:
        raise RefusedError(404, GONE) from None
    return packed.getvalue()
