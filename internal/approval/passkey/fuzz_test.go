package passkey

import (
	"testing"

	"sluice/tools/authenticator"
)

// FuzzBrowser: nothing that a browser sends makes the readers fail otherwise than by an error.
func FuzzBrowser(f *testing.F) {
	site, err := At(origin)
	if err != nil {
		f.Fatal(err)
	}
	phone := authenticator.Fixed(f, origin, site.ID())
	f.Add(phone.Create([]byte("challenge")))
	f.Add(phone.Get([]byte("challenge")))
	f.Fuzz(func(t *testing.T, data []byte) {
		if c, err := readCreated(data); err == nil {
			if key, err := c.key(site, []byte("challenge")); err == nil && key.Site != site.ID() {
				t.Errorf("a passkey of %q", key.Site)
			}
		}
		if a, err := readAsserted(data); err == nil && len(a.ID) == 0 {
			t.Error("an assertion of no passkey")
		}
	})
}

// FuzzAt: an address is an origin as browsers write it, or none.
func FuzzAt(f *testing.F) {
	f.Add(origin)
	f.Add("http://sluice.localhost")
	f.Fuzz(func(t *testing.T, address string) {
		s, err := At(address)
		if err != nil {
			return
		}
		if again, err := At(s.Origin()); err != nil || again != s {
			t.Errorf("%q: %+v, and of that %+v %v", address, s, again, err)
		}
	})
}
