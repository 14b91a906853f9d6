package doctor

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"sluice/internal/settings"
)

// TestPageName: the page's name on this machine is this machine's, or unknown to its resolver.
func TestPageName(t *testing.T) {
	unknown := "ok"
	if runtime.GOOS == "darwin" {
		unknown = "warn"
	}
	for _, c := range []struct {
		found []string
		err   error
		state string
	}{
		{[]string{"127.0.0.1", "::1"}, nil, "ok"}, {nil, errors.New("no such host"), unknown}, {nil, nil, unknown},
		{[]string{"192.0.2.1"}, nil, "fail"}, {[]string{"127.0.0.1", "192.0.2.1"}, nil, "fail"}, {[]string{"x"}, nil, "fail"},
	} {
		got := Page(t.Context(), settings.Web{}, "sluice.localhost", time.Now(),
			func(ctx context.Context, host string) ([]string, error) {
				if _, ok := ctx.Deadline(); !ok || host != "sluice.localhost" {
					t.Errorf("%s is asked for without an end", host)
				}
				return c.found, c.err
			})
		if got.State != c.state || got.What != "page" {
			t.Errorf("%v %v: %+v", c.found, c.err, got)
		}
	}
}

// TestPageCertificate: it is readable, of the name, and not about to expire.
func TestPageCertificate(t *testing.T) {
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	put := func(name, kind string, der []byte) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	keyFile := put("key", "PRIVATE KEY", private)
	for name, c := range map[string]struct {
		of       string
		from, to time.Duration
		state    string
		says     string
	}{
		"good":            {"sluice.example.org", -time.Hour, certSoon, "ok", "https://sluice.example.org, with a certificate until"},
		"soon over":       {"sluice.example.org", -time.Hour, certSoon - time.Second, "warn", "expires at"},
		"over":            {"sluice.example.org", -time.Hour, 0, "fail", "has expired"},
		"not yet":         {"sluice.example.org", time.Hour, 90 * 24 * time.Hour, "fail", "does not count before"},
		"another name":    {"example.org", -time.Hour, 90 * 24 * time.Hour, "fail", "for another name"},
		"any of a domain": {"*.example.org", -time.Hour, 90 * 24 * time.Hour, "ok", "https://"},
	} {
		spec := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{c.of}, NotBefore: now.Add(c.from), NotAfter: now.Add(c.to)}
		der, err := x509.CreateCertificate(rand.Reader, spec, spec, key.Public(), key)
		if err != nil {
			t.Fatal(err)
		}
		w := settings.Web{Name: "sluice.example.org", Cert: put("cert", "CERTIFICATE", der), Key: keyFile}
		if got := Page(t.Context(), w, "sluice.localhost", now, nil); got.State != c.state || !strings.Contains(got.Says, c.says) {
			t.Errorf("%s: %+v", name, got)
		}
		for _, file := range []string{filepath.Join(dir, "none"), w.Cert} {
			w.Key = file
			if got := Page(t.Context(), w, "sluice.localhost", now, nil); got.State != "fail" || !strings.Contains(got.Says, "cannot be used") {
				t.Errorf("key %s: %+v", file, got)
			}
		}
	}
}
