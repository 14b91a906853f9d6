

def test_empty_query_finds_nothing():
    index = Index()
    index.add("a", "the cat sat")
    assert search(index, "") == []
