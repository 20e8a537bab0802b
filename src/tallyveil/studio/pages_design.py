"""Explore mechanisms, and six small experiments to learn from."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tallyveil.studio.choices import LOSSES, SENTENCES
from tallyveil.studio.errors import RefusedError
from tallyveil.studio.state import Studio, read_body

__all__ = ["design_routes"]

LESSONS = {
    "epsilon": (
        "What epsilon means to one person",
        "Two tables differ by one person. How alike are their releases?",
    ),
    "bias": (
        "Why clamped noise is biased",
        "Noise that is cut off at 0 can only push upwards there.",
    ),
    "solvers": (
        "Why solvers' matrices are not private",
        "A zero beside a positive probability gives a person away for certain.",
    ),
    "distribution": (
        "Keeping a distribution",
        "Plain noise blurs the histogram of a table. It can be kept.",
    ),
    "levels": (
        "Several levels and collusion",
        "Readers trusted differently put their copies together. What do they learn?",
    ),
    "composition": (
        "Releases add up",
        "Every release of the same data costs. Together they cost less than their sum.",
    ),
}


def design_routes(studio: Studio) -> list[Route]:
    """The addresses of the pages about mechanisms."""
    pages = _Pages(studio)
    return [
        Route("/design", pages.design_page),
        Route("/design/solve", pages.solve, methods=["POST"]),
        Route("/design/prices", pages.prices, methods=["POST"]),
        Route("/design/certify", pages.certify, methods=["POST"]),
        Route("/learn", pages.learn_page),
        Route("/learn/{lesson}", pages.lesson_page),
        Route("/learn/{lesson}/answer", pages.answer, methods=["POST"]),
    ]


class _Pages:
    def __init__(self, studio: Studio) -> None:
        self.studio = studio

    async def design_page(self, request: Request) -> Response:
        return await self.studio.show(request, "design.html", sentences=SENTENCES, losses=LOSSES)

    async def solve(self, request: Request) -> Response:
        return JSONResponse(await self._ask(request, "solve"))

    async def prices(self, request: Request) -> Response:
        return JSONResponse(await self._ask(request, "find_prices"))

    async def certify(self, request: Request) -> Response:
        return JSONResponse(await self._ask(request, "certify_design"))

    async def _ask(self, request: Request, name: str) -> Any:
        return await self.studio.ask(request, name, asked=await read_body(request))

    async def learn_page(self, request: Request) -> Response:
        return await self.studio.show(request, "learn.html", lessons=LESSONS)

    async def lesson_page(self, request: Request) -> Response:
        lesson = request.path_params["lesson"]
        if lesson not in LESSONS:
            raise RefusedError(404, "There is no such page.")
        names = list(LESSONS)
        at = names.index(lesson)
        following = names[at + 1] if at + 1 < len(names) else None
        return await self.studio.show(
            request, "lesson.html", lesson=lesson, lessons=LESSONS, following=following, at=at + 1
        )

    async def answer(self, request: Request) -> Response:
        given = await read_body(request)
        epsilon, at = given.get("epsilon", "1"), given.get("at", 0)
        if not isinstance(epsilon, str) or type(at) is not int:
            raise RefusedError(400, "The sliders cannot be read.")
        lesson = request.path_params["lesson"]
        found = await self.studio.ask(request, "learn", lesson=lesson, epsilon=epsilon, at=at)
        return JSONResponse(found)
