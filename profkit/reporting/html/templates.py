"""The templates and assets of a page: filled so that nothing from outside is ever taken for markup."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from profkit.reporting.html.escape import link, prose, text

if TYPE_CHECKING:
    from jinja2 import Environment

FOLDER = Path(__file__).parent


def filled(name: str, **values: object) -> str:
    """A template of `templates/` as HTML. Every value is escaped and made harmless, but what is marked `|safe`."""
    return _environment().get_template(name).render(**values)


@lru_cache
def asset(name: str) -> str:
    """A stylesheet or script of `assets/`, as it stands there."""
    return (FOLDER / "assets" / name).read_text(encoding="utf-8").strip()


@lru_cache(maxsize=1)
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # here: only a page needs it
    from markupsafe import Markup

    def shown(value: object) -> object:
        return value if isinstance(value, Markup) else Markup(text(value))

    environment = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        finalize=shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["link"] = link
    environment.filters["prose"] = prose
    return environment
