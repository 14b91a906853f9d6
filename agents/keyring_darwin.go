package agents

// freshKeyring: the kernel has no keys here.
func freshKeyring() error { return nil }
