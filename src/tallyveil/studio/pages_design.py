"""Explore mechanisms, and six small experiments to learn from."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tallyveil.studio.choices import read_field
from tallyveil.studio.state import Answer, Pages, Studio, post
from tallyveil.studio.wording import LOSSES, SENTENCES, RefusedError

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
        "A zero next to a positive probability can reveal a person with certainty.",
    ),
    "distribution": (
        "Keeping a distribution",
        "Plain noise blurs the histogram of a table. It can be kept.",
    ),
    "levels": (
        "Several levels and collusion",
        "Readers who are trusted differently combine their copies. What do they learn?",
    ),
    "composition": (
        "Releases add up",
        "Every release of the same data costs. Together they cost less than their sum.",
    ),
}


def design_routes(studio: Studio) -> list[Route]:
    """Return the addresses of the pages about mechanisms."""
    pages = _Pages(studio)
    return [
        Route("/design", pages.show_design),
        post("/design/solve", pages.ask("solve")),
        post("/design/prices", pages.ask("find_prices")),
        post("/design/certify", pages.ask("certify_design")),
        Route("/learn", pages.show_lessons),
        Route("/learn/{lesson}", pages.show_lesson),
        post("/learn/{lesson}/answer", pages.answer),
    ]


class _Pages(Pages):
    async def show_design(self, request: Request) -> Response:
        return await self.studio.show(request, "design.html", sentences=SENTENCES, losses=LOSSES)

    def ask(self, task: str) -> Answer:
        """Return what answers a question about a design by a worker's task."""

        async def answer(request: Request, message: dict[str, Any]) -> Any:
            return await self.studio.ask(request, task, message=message)

        return answer

    async def show_lessons(self, request: Request) -> Response:
        return await self.studio.show(request, "learn.html", lessons=LESSONS)

    async def show_lesson(self, request: Request) -> Response:
        lesson, names = request.path_params["lesson"], [*LESSONS, None]
        if lesson not in LESSONS:
            raise RefusedError(404, "There is no such page.")
        number = names.index(lesson) + 1
        return await self.studio.show(
            request,
            "lesson.html",
            lesson=lesson,
            lessons=LESSONS,
            following=names[number],
            number=number,
        )

    async def answer(self, request: Request, message: dict[str, Any]) -> Any:
        return await self.studio.ask(
            request,
            "learn",
            lesson=request.path_params["lesson"],
            epsilon=read_field(message, "epsilon", str, "1"),
            count=read_field(message, "at", int, 0),
        )
