package sandbox

const (
	machine      = 0xc00000b7 // AUDIT_ARCH_AARCH64
	foreignCalls = 0xffffffff // it has one set of numbers
)
