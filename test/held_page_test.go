//go:build linux

package test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sluice/engine"
	"sluice/tools/conform"
)

// tryPage asks each host at the page's port, straight and by the proxy's two ways, for the page by its own name, and
// for the service beside it. It prints what is answered, heads included.
const tryPage = `
import http.client, os, sys, urllib.parse
name, page, beside = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
proxy = urllib.parse.urlsplit(os.environ.get("HTTP_PROXY", ""))
def ask(way, host, port, called):
    print("tried", way, host, port)
    try:
        to = (host, port) if way == "straight" else (proxy.hostname or "127.0.0.1", proxy.port or 3128)
        c = http.client.HTTPConnection(*to, timeout=5)
        if way == "tunnel":
            c.set_tunnel(host, port)
        c.request("GET", f"http://{host}:{port}/" if way == "proxy" else "/", headers={"Host": called})
        r = c.getresponse()
        print(r.status, r.headers, r.read().decode())
    except OSError as e:
        print("no:", e)
for way in "straight", "proxy", "tunnel":
    for host in "127.0.0.1", "localhost", "::1", "0.0.0.0", name:
        ask(way, host, page, f"{name}:{page}")
ask("straight", "127.0.0.1", beside, "beside")
`

// TestHeldAgentCannotReachThePage: whatever network a role has, and though its settings name the page's address, no
// agent in a sandbox gets an answer of the page. The same tries outside of one do.
func TestHeldAgentCannotReachThePage(t *testing.T) {
	t.Parallel()
	conform.Rule(t, "11-page held", "A held agent cannot reach the page")
	beside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "beside it") }))
	t.Cleanup(beside.Close)
	service := strings.TrimPrefix(beside.URL, "http://")
	_, besidePort, _ := strings.Cut(service, ":")
	page := freePort(t)
	w := newCaged(t, fmt.Sprintf(`sandbox: {mode: on}
agents: {tries: {command: [./try.sh]}}
roles:
  none: {agent: tries, network: none}
  web: {agent: tries}
  named: {agent: tries, network: [web, "127.0.0.1:%s", "localhost:%s", "*.sluice.localhost:%s", "%s", "localhost:%s"]}
`, page, page, page, service, besidePort))
	w.env = append(w.env, "SLUICE_CONFIG_WEB_LISTEN=127.0.0.1:"+page)
	w.put("repo/.workflow/specs/tries.yaml", `
workflow: {id: tries}
steps:
  - {id: none, agent: {type: none, prompt: try}, next_step: web}
  - {id: web, agent: {type: web, prompt: try}, next_step: named}
  - {id: named, agent: {type: named, prompt: try}, next_step: DONE}
`)
	w.put("repo/try.sh", "")
	w.commit()
	w.up()
	w.triesThePage(page, besidePort)
	w.do(w.bin, "start", "tries")
	eventually(t, "all have tried", func() bool { st, ok := w.status(); return ok && len(st.Runs) == 1 && !st.Runs[0].Live() })
	if st, _ := w.status(); st.Runs[0].Phase != engine.RunCompleted {
		t.Fatal(w.do(w.bin, "log", "--all"))
	}
	for _, step := range []string{"none", "web", "named"} {
		raw, err := os.ReadFile(filepath.Join(w.repo, "tried-"+step))
		out := string(raw)
		if err != nil || strings.Count(out, "tried ") != 16 { // five hosts in three ways, and the service beside
			t.Errorf("%s: not all was tried: %v\n%s", step, err, out)
		}
		if strings.Contains(out, pagePolicy) || strings.Contains(out, "Not logged in") || strings.Contains(out, "is not the page's") {
			t.Errorf("%s: the page was reached:\n%s", step, out)
		}
		if reached := strings.Contains(out, "beside it"); reached != (step == "named") {
			t.Errorf("%s: the service beside the page was reached: %v\n%s", step, reached, out)
		}
	}
	refused, err := os.ReadFile(filepath.Join(w.repo, ".workflow/runs/tries-1/named.1/network.log"))
	if err != nil || !slices.ContainsFunc(strings.Split(string(refused), "\n"), func(l string) bool {
		return strings.HasSuffix(l, "refused 127.0.0.1:"+page)
	}) {
		t.Errorf("what was refused is not on record: %v %q", err, refused)
	}
}

// pagePolicy is in the head of each answer of the page.
const pagePolicy = "trusted-types sluice"

// triesThePage writes the agent's program. Outside of a sandbox it gets answers of the page.
func (w *sandbox) triesThePage(page, beside string) {
	w.t.Helper()
	link, err := url.Parse(strings.TrimSpace(w.do(w.bin, "web")))
	if err != nil || link.Port() != page {
		w.t.Fatalf("%s: %v", link, err)
	}
	args := []string{"-c", tryPage, link.Hostname(), page, beside}
	w.put("repo/try.sh", fmt.Sprintf("#!/bin/sh\npython3 -c '%s' %s >\"tried-$SLUICE_STEP\" 2>&1\n", tryPage,
		strings.Join(args[2:], " ")))
	if err := os.Chmod(filepath.Join(w.repo, "try.sh"), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if out, err := exec.CommandContext(w.t.Context(), "python3", args...).CombinedOutput(); err != nil ||
		strings.Count(string(out), pagePolicy) < 3 || !strings.Contains(string(out), "Not logged in") {
		w.t.Fatalf("outside the page is not reached: %v\n%s", err, out)
	}
}
