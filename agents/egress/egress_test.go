package egress

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/tools/conform"
)

// served starts a proxy on a socket, and returns what it refused.
func served(t *testing.T, rules Rules) (socket string, refused func() []string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan string, 100)
	p := NewProxy(rules, func(host string) { got <- host })
	done := make(chan error, 1)
	go func() { done <- p.Serve(l) }()
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return socket, func() (out []string) {
		for {
			select {
			case h := <-got:
				out = append(out, h)
			default:
				return out
			}
		}
	}
}

// through returns a client that uses the proxy's socket.
func through(socket string) *http.Client {
	return &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{
		Proxy:       http.ProxyURL(&url.URL{Scheme: "http", Host: "proxy"}),
		DialContext: func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", socket) },
	}}
}

func TestProxyRefusesTheMachine(t *testing.T) {
	conform.Rule(t, "4-trust network", "web leads to no host of this machine or of a private network; what is refused is told")
	web := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("reached") }))
	defer web.Close()
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(web.URL, "http://"))
	socket, refused := served(t, Rules{Web: true})
	for _, to := range []string{web.URL, "http://localhost:" + port, "http://[::1]:" + port, "http://0.0.0.0:" + port, "http://[::ffff:127.0.0.1]:" + port, "http://10.0.0.1/", "http://169.254.169.254/latest", "http://8.8.8.8:22/"} {
		resp, err := through(socket).Get(to)
		if err != nil {
			t.Errorf("%s: %v", to, err)
			continue
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != http.StatusForbidden && resp.StatusCode != http.StatusBadGateway || !strings.Contains(string(body), "sluice:") {
			t.Errorf("%s: %s %s", to, resp.Status, body)
		}
	}
	if got := refused(); !slices.Contains(got, "169.254.169.254:80") || !slices.Contains(got, "127.0.0.1:"+port) || !slices.Contains(got, "8.8.8.8:22") {
		t.Errorf("told: %q", got)
	}
	// As a tunnel.
	c, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "CONNECT 127.0.0.1:%s HTTP/1.1\r\nHost: x\r\n\r\n", port)
	if line, _ := bufio.NewReader(c).ReadString('\n'); !strings.Contains(line, "403") {
		t.Errorf("tunnel: %q", line)
	}
}

func TestProxyRules(t *testing.T) {
	r := Rules{Hosts: []string{"api.example.org", "*.example.net", "127.0.0.1:8080", "[::1]:9", "db:5432"}}
	for at, want := range map[string]bool{
		"api.example.org:443": true, "API.example.org:80": true, "api.example.org:22": false, "x.api.example.org:443": false, "example.net:443": false,
		"a.example.net:443": true, "a.b.example.net:443": true, "127.0.0.1:8080": true, "127.0.0.1:80": false, "::1:9": false, "db:5432": true, "db:443": false, "evil.org:443": false,
	} {
		host, port, err := net.SplitHostPort(at)
		if err != nil {
			continue
		}
		if got := named(r.Hosts, host, port); got != want {
			t.Errorf("%s: %v", at, got)
		}
	}
	if got := r.Loopback(); !slices.Equal(got, []string{"127.0.0.1:8080", "[::1]:9"}) {
		t.Errorf("%q", got)
	}
	for _, bad := range []string{"", "a b", "http://x", "x/y", "a:b:c:d/", "x:99999", "x:0", "*", "a*b", "u@h"} {
		if _, _, err := SplitHost(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	for ip, want := range map[string]bool{"8.8.8.8": true, "127.0.0.1": false, "10.1.2.3": false, "100.64.1.1": false, "169.254.1.1": false, "::1": false, "fd00::1": false,
		"fe80::1": false, "::ffff:10.0.0.1": false, "64:ff9b::a00:1": false, "2002:a00:1::": false, "224.0.0.1": false, "0.0.0.0": false, "2606:4700::1111": true} {
		if got := Public(netip.MustParseAddr(ip)); got != want {
			t.Errorf("%s: %v", ip, got)
		}
	}
}

// TestProxyHandsStreamsOn: each piece of an answer arrives when it is sent, not at the end.
func TestProxyHandsStreamsOn(t *testing.T) {
	go1, go2 := make(chan struct{}), make(chan struct{})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, step := range []chan struct{}{go1, go2} {
			<-step
			fmt.Fprintln(w, "data: piece")
			w.(http.Flusher).Flush()
		}
	}))
	defer web.Close()
	socket, _ := served(t, Rules{Hosts: []string{strings.TrimPrefix(web.URL, "http://")}})
	close(go1)
	resp, err := through(socket).Get(web.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	r := bufio.NewReader(resp.Body)
	if line, err := r.ReadString('\n'); err != nil || line != "data: piece\n" {
		t.Fatalf("%q %v", line, err)
	}
	close(go2) // only now: the first came before
	if rest, err := io.ReadAll(r); err != nil || string(rest) != "data: piece\n" {
		t.Errorf("%q %v", rest, err)
	}
}

// TestCarry: inside, a service of this machine in the rules is on the same port; for one that is
// not in the rules, or not running, the connection ends.
func TestCarry(t *testing.T) {
	conform.Rule(t, "4-trust network", "a service of this machine that the role names is reached on its port inside")
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer echo.Close()
	go func() {
		for {
			c, err := echo.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			go func() { defer c.Close(); _, _ = io.Copy(c, c) }()
		}
	}()
	at := echo.Addr().String()
	p := NewProxy(Rules{Hosts: []string{at}}, nil)
	for to, want := range map[string]string{at: "hello", "127.0.0.1:1": ""} {
		inside, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- p.Carry(inside, to) }()
		c, err := net.Dial("tcp", inside.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, "hello")
		closeWrite(c)
		if got, _ := io.ReadAll(c); string(got) != want {
			t.Errorf("%s: %q, want %q", to, got, want)
		}
		c.Close()
		inside.Close()
		if err := <-done; err != nil {
			t.Errorf("%s: %v", to, err)
		}
	}
}

// TestAddress: the proxy's port differs from those of services in the rules.
func TestAddress(t *testing.T) {
	r := Rules{Hosts: []string{"127.0.0.1:3128", "localhost:3129", "127.0.0.1:8080"}}
	if got := r.Address(); got != "127.0.0.1:3130" {
		t.Error(got)
	}
	if got := (Rules{Web: true}).Vars(); !slices.Contains(got, "https_proxy=http://127.0.0.1:3128") {
		t.Error(got)
	}
}

// TestOwnAddress: a public address of this machine still counts as this machine's.
func TestOwnAddress(t *testing.T) {
	p := NewProxy(Rules{Web: true}, nil)
	p.addrs = func() ([]net.Addr, error) {
		return []net.Addr{&net.IPNet{IP: net.ParseIP("8.8.4.4"), Mask: net.CIDRMask(24, 32)}, &net.IPNet{IP: net.ParseIP("2600::1"), Mask: net.CIDRMask(64, 128)}}, nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // no connection is made
	for at, refused := range map[string]bool{"8.8.4.4:80": true, "[::ffff:8.8.4.4]:80": true, "[2600::1]:443": true, "8.8.4.5:80": false} {
		if c, err := p.dial(ctx, "tcp", at); errors.Is(err, errRefused) != refused {
			t.Errorf("%s: %v", at, err)
		} else if err == nil {
			c.Close()
		}
	}
}

// TestPublicHosts: a host allowed only at public addresses is refused at a private one, and on
// other ports.
func TestPublicHosts(t *testing.T) {
	p := NewProxy(Rules{Public: []string{"localhost", "127.0.0.1", "8.8.8.8", "10.0.0.1:22"}}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := p.dial(ctx, "tcp", "localhost:80"); !errors.Is(err, errRefused) {
		t.Errorf("localhost: %v", err)
	}
	cancel() // no connection is made
	for at, refused := range map[string]bool{"127.0.0.1:443": true, "8.8.8.8:443": false, "8.8.8.8:22": true, "8.8.4.4:443": true, "10.0.0.1:22": true} {
		c, err := p.dial(ctx, "tcp", at)
		if err == nil {
			c.Close()
		}
		if errors.Is(err, errRefused) != refused {
			t.Errorf("%s: %v", at, err)
		}
	}
}

// TestNoSpecialRange: no address of IANA's special-purpose registries, of a cloud's own services,
// or of an IPv6 form that leads to one of these, is public. It tests the edges of each range and
// the addresses beside them.
func TestNoSpecialRange(t *testing.T) {
	for _, ip := range []string{
		// IPv4 registry.
		"0.0.0.0", "0.255.255.255", "10.0.0.0", "10.255.255.255", "100.64.0.0", "100.127.255.255", "127.0.0.1", "127.255.255.255", "169.254.0.0", "169.254.169.254",
		"172.16.0.0", "172.31.255.255", "192.0.0.0", "192.0.0.9", "192.0.0.10", "192.0.0.170", "192.0.2.1", "192.31.196.1", "192.52.193.1", "192.88.99.1",
		"192.168.0.0", "192.168.255.255", "192.175.48.1", "198.18.0.0", "198.19.255.255", "198.51.100.1", "203.0.113.1", "240.0.0.0", "255.255.255.255",
		"224.0.0.1", "239.255.255.255", "168.63.129.16",
		// IPv6 registry.
		"::", "::1", "::ffff:0:0", "64:ff9b::1", "64:ff9b:1::1", "64:ff9b:1:ffff::1", "100::", "100::ffff", "100:0:0:1::1", "2001::1", "2001:1::1", "2001:1::2", "2001:1::3", "2001:2::1", "2001:3::1",
		"2001:4:112::1", "2001:10::1", "2001:20::1", "2001:30::1", "2001:1ff:ffff::", "2001:db8::1", "2001:db8:ffff::", "2002::1", "2620:4f:8000::1", "3fff::", "3fff:fff:ffff::",
		"5f00::", "5f00:ffff::1", "fc00::", "fdff::1", "fd00:ec2::254", "fe80::1", "febf::1", "fec0::", "feff:ffff::1", "ff02::1", "ffff::1",
		// Not allocated by the registry yet.
		"::2", "::7f00:1", "::a9fe:a9fe", "200::1", "400::1", "1000::1", "4000::1", "6000::1", "8000::1", "c000::1", "e000::1", "f000::1", "fe00::1",
		// IPv4 within IPv6: mapped, translated, 6to4, Teredo (the client's address is inverted),
		// ISATAP.
		"::ffff:127.0.0.1", "::ffff:168.63.129.16", "::ffff:0:10.0.0.1", "64:ff9b::a9fe:a9fe", "64:ff9b::808:808", "2002:7f00:1::1", "2002:a83f:8110::1", "2002:808:808::1", "2001:0:4136:e378:8000:63bf:5601:5601",
		"2606:4700::5efe:a00:1", "2606:4700::200:5efe:a83f:8110",
	} {
		if a := netip.MustParseAddr(ip); Public(a) {
			t.Errorf("%s is public", ip)
		}
	}
	for _, ip := range []string{"1.0.0.0", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0", "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0",
		"168.63.129.15", "168.63.129.17", "192.0.1.0", "192.0.3.0", "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0", "203.0.114.0", "223.255.255.255",
		"2001:200::1", "2001:db7::1", "2001:db9::1", "2003::1", "2400::1", "2606:4700::1111", "2620:4f:8001::1", "2a00:1450::1", "3ffe::1", "::ffff:8.8.8.8", "2606:4700::5efe:808:808"} {
		if a := netip.MustParseAddr(ip); !Public(a) {
			t.Errorf("%s is not public", ip)
		}
	}
	if Public(netip.Addr{}) || Public(netip.MustParseAddr("2606:4700::1%eth0")) {
		t.Error("no address, or one with a zone, is public")
	}
}

// TestPageIsNotReached: no rule leads to sluice's page, by any name or address of this machine.
func TestPageIsNotReached(t *testing.T) {
	conform.Rule(t, "11-page held", "A held agent cannot reach the page")
	page := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("reached") }))
	defer page.Close()
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(page.URL, "http://"))
	beside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer beside.Close()
	names := []string{"127.0.0.1:" + port, "localhost:" + port, "0.0.0.0:" + port, "[::ffff:127.0.0.1]:" + port}
	rules := Rules{Web: true, Hosts: append(names, strings.TrimPrefix(beside.URL, "http://")), Page: port}
	socket, refused := served(t, rules)
	for _, at := range names {
		resp, err := through(socket).Get("http://" + at)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %s", at, resp.Status)
		}
	}
	if got := refused(); !slices.Contains(got, "127.0.0.1:"+port) {
		t.Errorf("reported: %q", got)
	}
	resp, err := through(socket).Get(beside.URL)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("another service of this machine: %v %v", resp, err)
	}
	p := NewProxy(rules, nil)
	p.addrs = func() ([]net.Addr, error) {
		return []net.Addr{&net.IPNet{IP: net.ParseIP("192.0.2.7"), Mask: net.CIDRMask(24, 32)}}, nil
	}
	for at, want := range map[string]bool{"192.0.2.7:" + port: true, "192.0.2.8:" + port: false, "192.0.2.7:1": false,
		"[::1]:" + port: true, "127.9.9.9:" + port: true} {
		if err := p.besidePage("tcp", at, nil); errors.Is(err, errRefused) != want {
			t.Errorf("%s: %v", at, err)
		}
	}
}
