"""What `--on` says, and the command that each place is started by."""

from __future__ import annotations

import pytest

from profkit.core.errors import UsageError
from profkit.execution.places.kinds import parse_places


def started(text: str) -> list[list[str]]:
    return [list(place.start) for place in parse_places([text])]


def test_commas_part_places_and_not_the_arguments_of_one() -> None:
    text = "ssh:gpu1, srun:--gres=gpu:h200:1 --nodelist=a,b,localhost,local"
    assert [place.title for place in parse_places([text, "docker:image"])] == [
        "ssh:gpu1",
        "srun:--gres=gpu:h200:1 --nodelist=a,b,localhost",
        "local",
        "docker:image",
    ]


def test_options_of_docker_and_kubectl_stand_before_the_name() -> None:
    (docker,) = started("docker:--gpus all --shm-size 8g nvcr.io/nvidia/pytorch:25.01-py3")
    assert docker[:5] == ["docker", "run", "-i", "--rm", "--init"]
    assert docker[-6:] == ["--gpus", "all", "--shm-size", "8g", "nvcr.io/nvidia/pytorch:25.01-py3", "sh"]
    (kubectl,) = started("kubectl:-n ml pod-0 -c main")
    assert kubectl == ["kubectl", "exec", "-i", "-n", "ml", "pod-0", "-c", "main", "--", "sh"]


def test_ssh_asks_no_questions_lends_nothing_and_notices_a_dead_line() -> None:
    ((program, *words),) = started("ssh://me@gpu1:2222")
    assert program == "ssh"
    assert words[-3:] == ["--", "ssh://me@gpu1:2222", "sh"]
    for option in ("BatchMode=yes", "ForwardAgent=no", "ServerAliveInterval=15", "ControlMaster=no"):
        assert option in words


def test_a_prefix_with_a_token_is_called_by_its_program() -> None:
    (place,) = parse_places(["prefix:tool --token=hunter2 run"])
    assert place.title == "prefix:tool"
    assert place.start == ("tool", "--token=hunter2", "run", "sh")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "gpu1",
        "ssh:",
        "ssh:-oProxyCommand=evil",
        "ssh:a b",
        "local:x",
        "prefix:'",
        "ray:",
        "modal:",
        "SSH:a",
    ],
)
def test_what_is_no_place_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_places([text])
