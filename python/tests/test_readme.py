"""The Python example of README.md runs as it stands there."""

from pathlib import Path

README = Path(__file__).parents[2] / "README.md"


def test_the_example_of_the_readme(tmp_path, monkeypatch, capsys):
    blocks = [rest.split("```")[0] for rest in README.read_text(encoding="utf-8").split("\n```python\n")[1:]]
    assert len(blocks) == 1
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(blocks[0], names)
    assert (tmp_path / "sinc.json").exists()
    mean, std = names["mean"], names["std"]
    assert abs(mean[0] - 1.0) < 2 * std[0] and 0.09 < std[0] < 0.12
    assert "of 100 rows kept" in capsys.readouterr().out
