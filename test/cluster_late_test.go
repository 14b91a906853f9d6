//go:build linux

package test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sluice/tools/conform"
	"sluice/tools/natstest"
)

// lateAgent is workerAgent with work that says who made it, and that ends when its own machine may.
var lateAgent = strings.NewReplacer("echo two >", "echo two of @NAME@ >", "@RAN@.go", "@RAN@.go-@NAME@").Replace(workerAgent)

// A worker is stopped while its agent works, and the step is launched anew on another one. The agent of the first
// finishes; the worker goes on and returns its work. What the second has made counts. That of the first is on a ref, a
// person sees it, and `sluice clean` removes it.
func TestClusterLateWork(t *testing.T) {
	conform.Rule(t, "13-workers late tree", "a stopped worker's tree is on a ref, status names it, and the second one's counts")
	t.Parallel()
	servers := natstest.Start(t, 1)
	a, all, id, ran := workersOf(t, servers, 2)
	for i, w := range all {
		w.put("agent.sh", strings.NewReplacer("@RAN@", ran, "@NAME@", string(rune('a'+i))).Replace(lateAgent))
	}
	a.bootIn(servers)
	eventually(t, "a leads", a.leads)
	all[0].workIn(servers, id)
	eventually(t, "the worker is there", a.hasWorker)
	a.do(a.bin, "start", "far")
	eventually(t, "B runs on the first", func() bool { return strings.HasSuffix(ranLines(t, ran), "B a\n") })
	all[0].signal(syscall.SIGSTOP)
	finish := func(name string) {
		if err := os.WriteFile(ran+".go-"+name, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	finish("a")
	all[1].workIn(servers, id)
	eventually(t, "B runs on the second", func() bool { return strings.HasSuffix(ranLines(t, ran), "B b\n") })
	eventually(t, "the agent of the first has ended", func() bool {
		return len(processesOf(filepath.Join(all[0].work, "repo"))) <= 1
	})
	all[0].signal(syscall.SIGCONT)

	const ref = "refs/sluice/late/far-1/B.1.1"
	look := "git diff " + ref + "^ " + ref
	shown := func() string { return strings.Join(strings.Fields(a.do(a.bin, "status")), " ") }
	eventually(t, "status names it", func() bool {
		return strings.Contains(shown(), "launch 1 of far-1, attempt 1 of step B, was replaced before its worker returned it") &&
			strings.Contains(shown(), look)
	})
	if got := a.do(a.bin, "status", "--json"); !strings.Contains(got, `"ref": "`+ref+`"`) || !strings.Contains(got, look) {
		t.Errorf("as JSON:\n%s", got)
	}
	if got := a.do("sh", "-c", look); !strings.Contains(got, "\n+two of a\n") || strings.Contains(got, "one.txt") {
		t.Errorf("%s:\n%s", look, got)
	}
	eventually(t, "the first has forgotten it", func() bool {
		return all[0].do("git", "branch", "--list", "sluice-worker/*") == "" &&
			all[0].do("git", "for-each-ref", "refs/sluice/worker") == ""
	})
	if s := a.step("B"); s.State != "running" {
		t.Errorf("B is %s", s.State)
	}
	kept := a.do("git", "rev-parse", ref)

	finish("b")
	eventually(t, "the run ends", a.ended)
	if s := a.step("B"); s.Attempt != 1 {
		t.Errorf("B has %d attempts", s.Attempt)
	}
	if log := a.do(a.bin, "log"); strings.Count(log, "made by b") != 1 {
		t.Errorf("B has not the outcome of the second:\n%s", log)
	}
	if got := a.do("git", "show", "sluice/far-1:two.txt"); got != "two of b\n" {
		t.Errorf("on the branch: %q", got)
	}
	if got := a.do("git", "rev-parse", ref); got != kept {
		t.Errorf("the ref has moved from %s to %s", kept, got)
	}
	if on := a.do("git", "for-each-ref", "--format=%(refname)", "--contains", ref+"^2"); on != ref+"\n" {
		t.Errorf("its commits are on\n%s", on)
	}
	a.do(a.bin, "clean", "--keep", "0", "--older", "0s", "--yes")
	if left := a.do("git", "for-each-ref", "refs/sluice/late"); left != "" {
		t.Errorf("clean leaves %s", left)
	}
}
