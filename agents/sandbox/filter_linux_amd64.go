package sandbox

const (
	machine      = 0xc000003e // AUDIT_ARCH_X86_64
	foreignCalls = 0x40000000 // numbers from here on are x32's
)
