def search(index, query):
    """The documents that have all words of the query; none for an empty one."""
    words = query.split()
    if not words:
        return []
    return [doc for doc in index if all(doc in index.having(word) for word in words)]
