package egress

import (
	"net/netip"
	"slices"
)

// Public reports whether an address is globally reachable on the internet; for IPv6, only in the
// range that is allocated at all.
func Public(ip netip.Addr) bool {
	if !ip.IsValid() || ip.Zone() != "" {
		return false
	}
	ip = ip.Unmap()
	if ip.Is6() && !netip.MustParsePrefix("2000::/3").Contains(ip) {
		return false
	}
	if v4, ok := isatap(ip); ok && !Public(v4) {
		return false
	}
	return !slices.ContainsFunc(special(),
		func(s specialRange) bool { return netip.MustParsePrefix(s.prefix).Contains(ip) })
}

// isatap returns the IPv4 address in the interface identifier 0:5efe or 200:5efe (RFC 5214).
func isatap(ip netip.Addr) (netip.Addr, bool) {
	b := ip.As16()
	if !ip.Is6() || b[8]&^2 != 0 || b[9] != 0 || b[10] != 0x5e || b[11] != 0xfe {
		return netip.Addr{}, false
	}
	return netip.AddrFrom4([4]byte(b[12:])), true
}

// specialRange is a range outside the public internet.
type specialRange struct{ prefix, use string }

// special returns the complete IANA IPv4 and IPv6 Special-Purpose Address Registries (RFC 6890),
// including globally reachable ranges: none has web hosts. They include everything that leads to
// any IPv4 address (NAT64, 6to4, Teredo). Ranges from other registries follow, and cloud services
// on addresses that look public.
func special() []specialRange {
	return []specialRange{
		{"0.0.0.0/8", "this network"},
		{"10.0.0.0/8", "private use"},
		{"100.64.0.0/10", "shared address space"},
		{"127.0.0.0/8", "loopback"},
		{"169.254.0.0/16", "link local, metadata of clouds"},
		{"172.16.0.0/12", "private use"},
		{"192.0.0.0/24", "IETF protocol assignments"},
		{"192.0.2.0/24", "documentation"},
		{"192.31.196.0/24", "AS112"},
		{"192.52.193.0/24", "AMT"},
		{"192.88.99.0/24", "6to4 relay anycast"},
		{"192.168.0.0/16", "private use"},
		{"192.175.48.0/24", "direct delegation AS112"},
		{"198.18.0.0/15", "benchmarking"},
		{"198.51.100.0/24", "documentation"},
		{"203.0.113.0/24", "documentation"},
		{"240.0.0.0/4", "reserved, limited broadcast"},

		{"::/128", "unspecified"},
		{"::1/128", "loopback"},
		{"::ffff:0:0/96", "IPv4-mapped"},
		{"64:ff9b::/96", "NAT64"},
		{"64:ff9b:1::/48", "local NAT64"},
		{"100::/64", "discard only"},
		{"100:0:0:1::/64", "dummy prefix"},
		{"2001::/23", "IETF protocol assignments: Teredo, benchmarking, ORCHID and others"},
		{"2001:db8::/32", "documentation"},
		{"2002::/16", "6to4"},
		{"2620:4f:8000::/48", "direct delegation AS112"},
		{"3fff::/20", "documentation"},
		{"5f00::/16", "segment routing"},
		{"fc00::/7", "unique local"},
		{"fe80::/10", "link local"},

		{"224.0.0.0/4", "multicast"},
		{"fec0::/10", "site local, deprecated (RFC 3879)"},
		{"ff00::/8", "multicast"},
		{"168.63.129.16/32", "Azure's services of the host"},
	}
}
