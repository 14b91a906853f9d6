// Package forgestub is a loopback forge for tests: the part of GitHub's API that sluice asks, and a
// bare repo that git pushes to, on one address by TLS with a certificate of its own. The real gh
// and the real git speak to it.
package forgestub
