class Index:
    """Maps each word to the documents it stands in, in the order they were added."""

    def __init__(self):
        self._docs = []
        self._words = {}

    def add(self, doc, text):
        self._docs.append(doc)
        for word in text.lower().split():
            self._words.setdefault(word, set()).add(doc)

    def having(self, word):
        return self._words.get(word.lower(), set())

    def __iter__(self):
        return iter(self._docs)
