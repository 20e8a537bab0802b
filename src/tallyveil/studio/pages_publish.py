"""Pages of a publisher: four steps that can be walked back and forth, and what was released."""

from __future__ import annotations

import io
import zipfile
from fractions import Fraction
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tallyveil.release.methods.registry import PLAIN_METHODS
from tallyveil.studio.choices import (
    CHOICES,
    FORM,
    LOSSES,
    OWN_MECHANISM,
    SENTENCES,
    check_folder_name,
    read_choices,
)
from tallyveil.studio.errors import RefusedError
from tallyveil.studio.guard import RELEASE_POLICY
from tallyveil.studio.state import Draft, Studio, read_body
from tallyveil.studio.uploads import TABLE_ENDINGS, find_ending
from tallyveil.untrusted import escape_controls, parse_json

__all__ = ["publish_routes", "read_confidence"]

STEPS = ("table", "protect", "accuracy", "release")
TITLES = ("Table", "What is protected", "Privacy and accuracy", "Release")
IN_SIGHT = {
    *("count", "upper", "epsilon", "accuracy", "confidence", "method", "hierarchy", "by", "keep"),
    *("id_column", "categories", "kind", "contributions"),
    *("epsilons", "properties", "loss"),
}
"""Choices with a place of their own on the pages; the others are under "More choices"."""

ELSEWHERE = ("epsilon", "method", "epsilons", "loss", "properties", *FORM)
"""Choices that are made on other pages than the form of the second step."""

CONFIDENCES = (0.8, 0.9, 0.95, 0.99)
GONE = "The release is no longer in its folder."


def publish_routes(studio: Studio) -> list[Route]:
    """The addresses of the publisher's pages."""
    steps, released = _Steps(studio), _Released(studio)
    return [
        Route("/publish", steps.begin),
        Route("/publish/{draft}/zip", released.download),
        Route("/publish/{draft}/page", released.show_page),
        Route("/publish/{draft}/report", released.show_report),
        Route("/tables", steps.upload, methods=["PUT"]),
        Route("/tables/demo", steps.demo, methods=["POST"]),
        Route("/tables/folder", steps.choose, methods=["POST"]),
        Route("/publish/{draft}/mechanism", steps.receive_mechanism, methods=["PUT"]),
        Route("/publish/{draft}/{step}", steps.step),
        Route("/publish/{draft}/values", steps.values, methods=["POST"]),
        Route("/publish/{draft}/read", steps.read_again, methods=["POST"]),
        Route("/publish/{draft}/choices", steps.choices, methods=["POST"]),
        Route("/publish/{draft}/preview", steps.preview, methods=["POST"]),
        Route("/publish/{draft}/epsilon", steps.epsilon, methods=["POST"]),
        Route("/publish/{draft}/methods", steps.methods, methods=["POST"]),
        Route("/publish/{draft}/simulate", steps.simulate, methods=["POST"]),
        Route("/publish/{draft}/release", steps.release, methods=["POST"]),
        Route("/publish/{draft}/again", steps.again, methods=["POST"]),
        Route("/publish/{draft}/remove", steps.remove, methods=["POST"]),
    ]


def _read_name(request: Request) -> str:
    """The name of a file that is sent, for people's eyes only."""
    name = unquote(request.headers.get("x-name", ""))[:500]
    shown = escape_controls(name.replace("\\", "/").rpartition("/")[2])
    if not shown:
        raise RefusedError(400, "The file has no name.")
    return shown


class _Steps:
    def __init__(self, studio: Studio) -> None:
        self.studio = studio

    def _draft(self, request: Request) -> Draft:
        return self.studio.drafts.find(request.path_params["draft"])

    # -- the table ----------------------------------------------------------------------------

    async def begin(self, request: Request) -> Response:
        tables = await self.studio.run(self.studio.list_tables)
        return await self.studio.show(
            request,
            "publish.html",
            tables=tables,
            endings=",".join(TABLE_ENDINGS),
            form=[CHOICES[name] for name in FORM],
            chosen={},
        )

    async def upload(self, request: Request) -> Response:
        name = _read_name(request)
        ending = find_ending(name)
        if ending not in TABLE_ENDINGS:
            known = ", ".join(TABLE_ENDINGS)
            raise RefusedError(
                415, f"This is not a kind of table that is read. Known endings: {known}."
            )
        private = self.studio.uploads.new_folder()
        target = private / f"table{ending}"
        try:
            form = _read_form(request.headers.get("x-form"))
            await self.studio.uploads.receive(request.stream().__aiter__(), target)
            return await self._open(target, private, name, form)
        except BaseException:
            self.studio.uploads.remove(private)
            raise

    async def choose(self, request: Request) -> Response:
        given = await read_body(request)
        name, form = given.get("name"), _keep_form(read_choices(given.get("form", {})))
        tables = await self.studio.run(self.studio.list_tables)
        target = self.studio.find_in_folder(name, tables)
        private = self.studio.uploads.new_folder()
        try:
            return await self._open(target, private, str(name), form)
        except BaseException:
            self.studio.uploads.remove(private)
            raise

    async def demo(self, request: Request) -> Response:
        await read_body(request)
        private = self.studio.uploads.new_folder()
        target = private / "cases.csv"
        await self.studio.ask(None, "write_demo", table=str(target))
        return await self._open(target, private, "cases.csv", {}, invented=True)

    async def _open(
        self, target: Path, private: Path, name: str, form: dict[str, Any], invented: bool = False
    ) -> Response:
        seen = await self.studio.ask(None, "look_at_table", table=str(target), form=form)
        draft = Draft(name, target, private, seen["kind"], seen["rows"], seen["columns"], invented)
        draft.choices = dict(form)
        self.studio.drafts.add(draft)
        return JSONResponse({"next": f"/publish/{draft.id}/table"})

    async def read_again(self, request: Request) -> Response:
        """Read the table again, with other words on how its file is written."""
        draft, given = self._draft(request), await read_body(request)
        form = _keep_form(read_choices(given))
        seen = await self.studio.ask(request, "look_at_table", table=str(draft.table), form=form)
        draft.kind, draft.rows, draft.columns = seen["kind"], seen["rows"], seen["columns"]
        kept = {k: v for k, v in draft.choices.items() if k not in FORM}
        draft.choices = {**kept, **form}
        return JSONResponse({"next": f"/publish/{draft.id}/table"})

    async def values(self, request: Request) -> Response:
        draft = self._draft(request)
        await read_body(request)
        form = {k: v for k, v in draft.choices.items() if k in FORM}
        return JSONResponse(
            await self.studio.ask(request, "show_values", table=str(draft.table), form=form)
        )

    async def receive_mechanism(self, request: Request) -> Response:
        """The file of a mechanism of the publisher's own; the library judges it when it plans."""
        draft = self._draft(request)
        ending = find_ending(_read_name(request))
        if ending not in (".json", ".csv"):
            raise RefusedError(415, "A mechanism is a .json file, or a matrix as .csv.")
        target = draft.private / f"mechanism-{self.studio.new_key()}{ending}"
        await self.studio.uploads.receive(request.stream().__aiter__(), target)
        draft.mechanism = target
        return JSONResponse({})

    async def remove(self, request: Request) -> Response:
        await read_body(request)
        removed = self._draft(request)
        self.studio.drafts.remove(removed.id)
        if self.studio.current is removed:
            self.studio.current = None
        return JSONResponse({"next": "/publish"})

    # -- the steps ----------------------------------------------------------------------------

    async def step(self, request: Request) -> Response:
        draft, step = self._draft(request), request.path_params["step"]
        if step not in STEPS:
            raise RefusedError(404, "There is no such page.")
        at = STEPS.index(step)
        more: dict[str, list[Any]] = {}
        for name, choice in CHOICES.items():
            if name not in (*IN_SIGHT, *FORM):
                more.setdefault(choice.panel, []).append(choice)
        return await self.studio.show(
            request,
            f"step_{step}.html",
            draft=draft,
            steps=list(zip(STEPS, TITLES, strict=True)),
            at=at,
            more=more,
            form=[CHOICES[name] for name in FORM],
            offered=CHOICES,
            methods=(*PLAIN_METHODS, OWN_MECHANISM),
            losses=LOSSES,
            sentences=SENTENCES,
            confidences=CONFIDENCES,
            job=None if draft.job is None else draft.job.to_dict(),
            has_ledger=self.studio.ledger is not None,
        )

    async def choices(self, request: Request) -> Response:
        draft, _ = await self._store(request)
        return JSONResponse({"leaves": await self._leaves(draft)})

    async def _store(self, request: Request) -> tuple[Draft, dict[str, Any]]:
        """Keep what was chosen; what the message leaves out stays as it was."""
        draft, given = self._draft(request), await read_body(request)
        new = given.get("choices", {})
        found = read_choices(new)
        kept = {name: value for name, value in draft.choices.items() if name not in new}
        if given.get("replace") is True:  # a whole form: what it leaves out was taken back
            kept = {name: value for name, value in kept.items() if name in ELSEWHERE}
        before, draft.choices = draft.plan, {**kept, **found}
        if draft.plan != before:
            draft.cost = None
        if "dataset" in given:
            dataset = given["dataset"]
            if dataset is not None and not isinstance(dataset, str):
                raise RefusedError(400, "The dataset cannot be read.")
            draft.dataset = dataset or None
        return draft, given

    async def preview(self, request: Request) -> Response:
        draft, given = await self._store(request)
        plan = draft.plan
        return JSONResponse({**await self._plan(request, draft, given), "plan": plan})

    async def epsilon(self, request: Request) -> Response:
        draft, given = await self._store(request)
        within = given.get("within")
        if isinstance(within, bool) or not isinstance(within, (int, float)):
            raise RefusedError(400, "'within' must be a number.")
        confidence = read_confidence(given)
        found = await self._ask(
            request, draft, "find_epsilon", confidence=confidence, within=within
        )
        draft.choices["epsilon"] = [found["epsilon"]]
        seen = await self._plan(request, draft, given)
        return JSONResponse({**seen, "chosen": found["epsilon"]})

    async def _plan(self, request: Request, draft: Draft, given: dict[str, Any]) -> dict[str, Any]:
        """Plan the release, and keep what it would cost for the budget on top of every page."""
        draft.cost, self.studio.current, asked = None, draft, draft.plan
        seen: dict[str, Any] = await self._ask(
            request, draft, "preview", confidence=read_confidence(given)
        )
        cost = Fraction(seen.pop("cost"))
        if draft.plan == asked:  # not changed in another tab meanwhile
            draft.cost = cost
        return {**seen, "leaves": await self._leaves(draft)}

    async def _leaves(self, draft: Draft) -> dict[str, str]:
        """What the plan would leave of every budget, in words."""
        budget = await self.studio.run(self.studio.read_budget, draft)
        return {account["dataset"]: account["after"] for account in budget["accounts"]}

    async def methods(self, request: Request) -> Response:
        draft, _ = await self._store(request)
        return JSONResponse(await self._ask(request, draft, "compare_methods"))

    async def simulate(self, request: Request) -> Response:
        draft, _ = await self._store(request)
        return JSONResponse(await self._ask(request, draft, "simulate"))

    async def _ask(self, request: Request, draft: Draft, name: str, **given: Any) -> Any:
        place = draft.place(self.studio.ledger)
        return await self.studio.ask(
            request, name, choices=dict(draft.choices), place=place, rows=draft.rows, **given
        )

    # -- the release --------------------------------------------------------------------------

    async def release(self, request: Request) -> Response:
        """Begin the release, once: the same key is answered with the same job."""
        draft, given = await self._store(request)
        if given.get("request") != draft.request:
            raise RefusedError(409, "This page is out of date: open the release step again.")
        if given.get("plan") != draft.plan:
            raise RefusedError(
                409,
                "The plan was changed after this page was opened, perhaps in another tab: reload "
                "it and read the plan again.",
            )
        if self.studio.ledger is not None and draft.dataset is None:
            raise RefusedError(422, "Choose the dataset that pays: a ledger is open.")
        out = check_folder_name(given.get("out"))
        with draft.guard:
            job = draft.job
            if job is None or (job.state in ("cancelled", "refused") and not job.firm):
                draft.out, draft.report = out, given.get("report") is True
                job = draft.job = self._start(draft)
                draft.cost = None
        return JSONResponse({"job": job.id})

    def _start(self, draft: Draft) -> Any:
        given = {
            "choices": dict(draft.choices),
            "place": draft.place(self.studio.ledger, self.studio.folder),
            "shown": draft.shown if draft.table.parent == draft.private else str(draft.table),
            "request": draft.request,
        }
        return self.studio.jobs.start("publish", given)

    async def again(self, request: Request) -> Response:
        await read_body(request)
        draft = self._draft(request)
        draft.renew()
        return JSONResponse({"next": f"/publish/{draft.id}/accuracy"})


def read_confidence(given: dict[str, Any]) -> float:
    """The confidence in a message, 95 % unless it says another."""
    value = given.get("confidence", 0.95)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1:
        raise RefusedError(400, "'confidence' must lie between 0 and 1.")
    return float(value)


def _read_form(header: str | None) -> dict[str, Any]:
    """How the file that is sent is written, if that was said."""
    try:
        return _keep_form(read_choices(parse_json(unquote(header).encode()) if header else {}))
    except ValueError:
        raise RefusedError(400, "What is said of the file cannot be read.") from None


def _keep_form(choices: dict[str, Any]) -> dict[str, Any]:
    if set(choices) - set(FORM):
        raise RefusedError(400, "Only how the file is written can be said here.")
    return choices


class _Released:
    def __init__(self, studio: Studio) -> None:
        self.studio = studio

    def _released(self, request: Request) -> Path:
        draft = self.studio.drafts.find(request.path_params["draft"])
        if draft.job is None or draft.job.state != "done":
            raise RefusedError(404, "Nothing was released here yet.")
        return Path(draft.job.result["folder"])

    async def download(self, request: Request) -> Response:
        folder = self._released(request)
        content = await self.studio.run(_pack, folder)
        headers = {"content-disposition": f'attachment; filename="{_plain(folder.name)}.zip"'}
        return Response(content, media_type="application/zip", headers=headers)

    async def show_page(self, request: Request) -> Response:
        from tallyveil.release.datapackage import METHODOLOGY

        folder = self._released(request)
        if not (folder / METHODOLOGY).is_file():  # of several levels, the least private one's
            folder = min(folder.glob("level-1-*"), default=folder)
        return await self._show_file(folder / METHODOLOGY)

    async def show_report(self, request: Request) -> Response:
        """The comparison with the truth, for the publisher who asked for it."""
        folder = self._released(request)
        return await self._show_file(folder.with_name(f"{folder.name} CONFIDENTIAL.html"))

    async def _show_file(self, place: Path) -> Response:
        try:
            content = await self.studio.run(place.read_bytes)
        except OSError:
            raise RefusedError(404, GONE) from None
        headers = {"content-security-policy": RELEASE_POLICY}
        return Response(content, media_type="text/html", headers=headers)


def _plain(name: str) -> str:
    return "".join(c if c.isascii() and (c.isalnum() or c in " .()-_") else "_" for c in name)


def _pack(folder: Path) -> bytes:
    """The files of a release as a zip."""
    packed = io.BytesIO()
    try:
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(folder.rglob("*")):
                if path.is_file():
                    archive.write(path, Path(folder.name, path.relative_to(folder)))
    except OSError:
        raise RefusedError(404, GONE) from None
    return packed.getvalue()
