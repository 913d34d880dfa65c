"""What is said about this environment."""

from __future__ import annotations

import pytest

from stages import environment
from stages.environment import _Backend, _checked


def test_backends_that_can_be_imported_here_can_lower() -> None:
    found = {one["name"]: one for one in environment.environment()["backends"]}
    assert found["XNNPACK"] == {"name": "XNNPACK", "lowers_here": True, "problem": "", "install": ""}
    assert len(found) == 9


def test_missing_package_is_named_with_its_cure() -> None:
    found = _checked(_Backend("Moon", "json", ("not_installed_anywhere", "json"), install="pip install moon"))
    assert found["lowers_here"] is False
    assert found["problem"] == "not installed: not_installed_anywhere"
    assert found["install"] == "pip install moon"


def test_module_that_fails_to_import_is_named_in_one_line() -> None:
    found = _checked(_Backend("Moon", "executorch.backends.moon"))
    assert found["lowers_here"] is False
    assert "executorch.backends.moon cannot be imported: ModuleNotFoundError" in found["problem"]
    assert "\n" not in found["problem"]


def test_sdk_is_found_by_its_variable(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = _Backend("Moon", variable="MOON_SDK", install="install it")
    monkeypatch.delenv("MOON_SDK", raising=False)
    assert _checked(backend)["lowers_here"] is False
    monkeypatch.setenv("MOON_SDK", str(tmp_path))
    assert _checked(backend)["lowers_here"] is True
