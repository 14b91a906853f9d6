from chatcat.index import Index
from chatcat.search import search


def test_finds_all_words():
    index = Index()
    index.add("a", "the cat sat")
    index.add("b", "the dog sat")
    assert search(index, "the sat") == ["a", "b"]
    assert search(index, "cat sat") == ["a"]
