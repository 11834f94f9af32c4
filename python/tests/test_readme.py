"""The Python examples of README.md and of the package page run as they stand there; the first prints what is shown."""

from pathlib import Path

README = Path(__file__).parents[2] / "README.md"
PACKAGE_PAGE = Path(__file__).parents[1] / "README.md"


def test_the_example_of_the_readme_prints_what_is_shown(capsys):
    fences = README.read_text(encoding="utf-8").split("\n```")
    blocks = [tuple(block.split("\n", 1)) for block in fences[1::2]]
    examples = [i for i, (language, _) in enumerate(blocks) if language == "python"]
    assert len(examples) == 1
    (_, code), (language, shown) = blocks[examples[0]], blocks[examples[0] + 1]
    assert language == "text"
    names = {}
    exec(code, names)
    assert capsys.readouterr().out == shown + "\n"
    assert names["mean"].shape == names["std"].shape == (1000,)


def test_the_example_of_the_package_page(tmp_path, monkeypatch):
    (block,) = [rest.split("```")[0] for rest in PACKAGE_PAGE.read_text(encoding="utf-8").split("\n```python\n")[1:]]
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(block, names)
    assert (tmp_path / "sinc.json").exists()
    assert names["lower"][0] < 1.0 < names["upper"][0]
