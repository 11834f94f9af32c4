"""The Python examples of README.md run as they stand there."""

from pathlib import Path

README = Path(__file__).parents[2] / "README.md"


def test_the_examples_of_the_readme(tmp_path, monkeypatch, capsys):
    blocks = [rest.split("```")[0] for rest in README.read_text(encoding="utf-8").split("\n```python\n")[1:]]
    assert len(blocks) == 2
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(blocks[0], names)
    assert (tmp_path / "sinc.json").exists()
    mean, std = names["mean"], names["std"]
    assert abs(mean[0] - 1.0) < 2 * std[0] and 0.09 < std[0] < 0.12
    assert names["lower"][0] < mean[0] < names["upper"][0]
    assert "of 100 rows kept" in capsys.readouterr().out
    names = {}
    exec(blocks[1], names)
    assert abs(names["model"].noise_variance_ ** 0.5 - 0.1) < 0.002
    assert sum(part.n_rows for part in names["parts"]) == 300_000
    assert "1 feature, noise 0." in capsys.readouterr().out
