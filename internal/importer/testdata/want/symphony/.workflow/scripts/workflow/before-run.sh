make deps
