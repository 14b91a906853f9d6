package settings

import (
	"slices"

	"sluice/agents/egress"
	"sluice/agents/sandbox"
)

// Modes of the setting sandbox.mode.
const (
	SandboxAuto = "auto" // if available; otherwise launches are not held, and shown as such
	SandboxOn   = "on"   // without a sandbox, launches are refused
	SandboxOff  = "off"  // no sandbox
)

// Words for a role's network.
const (
	NetworkWeb  = "web"  // every public host, through the proxy; the default
	NetworkNone = "none" // its own loopback only
	NetworkHost = "host" // the machine's: not held
)

// Reach returns what a role's launches may reach; page is the port of the page, which they may not.
func (r Role) Reach(page string) (kind string, rules egress.Rules) {
	switch {
	case slices.Equal(r.Network, []string{NetworkNone}):
		return sandbox.NetNone, rules
	case slices.Equal(r.Network, []string{NetworkHost}):
		return sandbox.NetHost, rules
	}
	rules.Page, rules.Web = page, len(r.Network) == 0
	for _, h := range r.Network {
		switch {
		case h == NetworkWeb:
			rules.Web = true
		case slices.Contains(r.public, h):
			rules.Public = append(rules.Public, h)
		default:
			rules.Hosts = append(rules.Hosts, h)
		}
	}
	return sandbox.NetProxy, rules
}
