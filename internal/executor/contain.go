package executor

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"sluice/agents"
	"sluice/agents/program"
	"sluice/agents/sandbox"
	"sluice/engine"
	"sluice/internal/atomicfile"
	"sluice/internal/git"
	"sluice/internal/health"
	"sluice/internal/job"
	"sluice/internal/layout"
	"sluice/internal/settings"
	"sluice/internal/tree"
)

// contain puts a sandbox around the launch, or notes that none holds it.
func (e *Executor) contain(ctx context.Context, l order, p process, spec *agents.Spec) error {
	run, rest, _ := strings.Cut(l.key, "/")
	box, err := e.box()
	if err != nil {
		return job.Fatal("%v: the settings want one: see sluice doctor", err)
	}
	if box == nil {
		_, why := e.Level("")
		return e.expose(run, l.key, why)
	}
	set := p.who.set
	if p.who.role == "" {
		set = e.opt.Settings().Role(settings.AnyRole)
	}
	network, rules := set.Reach()
	if network == sandbox.NetHost {
		if err := e.expose(run, l.key, "its role has the machine's network (network: host)"); err != nil {
			return err
		}
	}
	if why, ok := e.opt.Unheld.any(); ok {
		if err := e.expose(run, "", "beside it an agent worked that no sandbox held: "+why); err != nil {
			return err
		}
	}
	plan, err := e.plan(ctx, l, p, run, rest, !box.Remaps())
	if err != nil {
		return err
	}
	if plan.HoldsHome() {
		if err := e.expose(run, l.key, "it can write to your home: what it leaves there runs when you log in"); err != nil {
			return err
		}
	}
	plan.Network = network
	plan.Ports = rules.Loopback()
	switch {
	case network == sandbox.NetProxy && !box.Remaps():
		if !rules.Web && len(plan.Ports) < len(rules.Hosts)+len(rules.Public) {
			return job.Unready("network: %s: single hosts cannot be held to on this system: want web, none, host, or services of this machine", strings.Join(set.Network, ", "))
		}
	case network == sandbox.NetProxy:
		spec.Net = &rules
	}
	spec.Env = e.insideEnv(spec.Env, plan, p.who.agent.Format)
	if spec.Net != nil {
		spec.Env = append(spec.Env, rules.Vars()...)
	}
	spec.Env = append(spec.Env, e.gitVars(l.key, plan.InPlace)...)
	argv, err := e.found(spec.Argv, spec.Env, p, &plan)
	if err != nil {
		return err
	}
	if spec.Cage, err = box.Wrap(plan, argv, spec.Env); err != nil {
		return job.Unready("sandbox: %v", err)
	}
	spec.Argv, spec.Env = nil, nil
	return nil
}

// plan lays out what the launch may see.
func (e *Executor) plan(ctx context.Context, l order, p process, run, rest string, inPlace bool) (plan sandbox.Plan, err error) {
	home := ""
	if h := e.variable("HOME"); filepath.IsAbs(h) {
		if real, err := atomicfile.RealPath(h); err == nil {
			home = real
		}
	}
	cwd, err := atomicfile.RealPath(p.cwd)
	if err == nil && p.judged.covers {
		cwd = p.judged.Dir
	}
	if err != nil {
		return plan, job.Unready("folder %s: %v", e.Shown(p.cwd), err)
	}
	plan = sandbox.Plan{InPlace: inPlace, Home: home, Cwd: cwd, Hide: append(e.hidden(), filepath.Join(e.Root, filepath.FromSlash(engine.WorkspaceDir))), Inbox: e.PIDFile(l.key) + layout.InboxMark,
		Private: filepath.Join(e.State, layout.HomesDir, layout.PathElement(run), layout.PathElement(e.homeOf(l, p, rest)))}
	for _, dir := range []string{plan.Inbox, filepath.Join(plan.Inbox, run), plan.Private} {
		if err := e.ahead.folder(dir); err != nil {
			return plan, err
		}
	}
	plan.Tools = e.tools(plan, p.judged.host == "")
	top, err := e.shownTop(ctx, l.key, cwd, p, &plan)
	if err != nil {
		return plan, err
	}
	around := top
	if around == "" {
		around = e.Root
	}
	if p.judged.seat == nil {
		for _, root := range e.opt.Unheld.rootsBelow(around, e) { // the gates of another repo are not this one's to answer
			plan.Shown = append(plan.Shown, sandbox.Mount{Path: root})
		}
	}
	for _, dir := range []string{e.Root, cwd, top} {
		at := filepath.Join(dir, ".workflow")
		if dir == "" || slices.Contains(plan.Inboxes, filepath.Join(at, "signals")) {
			continue
		}
		for _, f := range []string{at, filepath.Join(at, "signals")} {
			if err := sandbox.NoLink(f); err != nil {
				return plan, job.Unready("%v", err)
			}
		}
		if err := atomicfile.MkdirBelow(dir, filepath.Join(at, "signals"), 0o755); err != nil {
			return plan, err
		}
		if top == "" || !sandbox.Inside(at, top) { // else the main checkout is read-only anyway, and this would cover top
			plan.Shown = append(plan.Shown, sandbox.Mount{Path: at})
		}
		plan.Inboxes = append(plan.Inboxes, filepath.Join(at, "signals"))
	}
	writable := []string{l.dir + "/" + layout.OwnDir, e.RunDir(run) + "/files"}
	if p.judged.seat != nil {
		writable = writable[:1]
	}
	for _, rel := range writable {
		if err := e.MakeBelow(rel, 0o700); err != nil {
			return plan, job.Unready("%v", err)
		}
		plan.Own = append(plan.Own, filepath.Join(e.Root, filepath.FromSlash(rel)))
	}
	own, err := e.makeOwn(p.writes)
	if err != nil {
		return plan, err
	}
	plan.Own = append(plan.Own, own...)
	return plan, e.seed(plan, p.who.agent.Format)
}

// shownTop shows the checkout that the launch works in: a judge its own.
func (e *Executor) shownTop(ctx context.Context, key, cwd string, p process, plan *sandbox.Plan) (top string, err error) {
	if p.judged.seat != nil {
		return p.judged.Top, e.shownSeat(p.judged, plan)
	}
	return e.shownTree(ctx, key, p.work, cwd, plan)
}

// shownTree shows the checkout that the launch works in, with a git folder of the launch's own.
func (e *Executor) shownTree(ctx context.Context, key string, work *tree.Order, cwd string, plan *sandbox.Plan) (top string, err error) {
	if !e.opt.Git.Checkout() {
		plan.Shown = append(plan.Shown, sandbox.Mount{Path: e.Root, Write: true})
		return "", nil
	}
	top, err = git.Toplevel(cwd)
	if err != nil {
		return "", job.NoGit(e.Shown(cwd), err)
	}
	main, err := git.Toplevel(e.Root)
	if err != nil {
		return "", job.NoGit(e.Shown(e.Root), err)
	}
	own, err := e.ownGit(ctx, key, top, work, plan.InPlace)
	if err != nil {
		if health.Passing(err) || ctx.Err() != nil {
			return "", err
		}
		return "", job.NoGit(e.Shown(top), err)
	}
	c, err := e.checkoutOf(own, main, plan.InPlace)
	if err != nil {
		return "", job.NoGit(e.Shown(top), err)
	}
	e.workedIn(key, own)
	if around := e.reached(c); around != "" {
		same, err := sandbox.Identify(around, top)
		if err != nil {
			return "", job.Unready("worktree %s: %v", e.Shown(top), err)
		}
		plan.Same = append(plan.Same, same)
	}
	mounts, err := c.Mounts()
	if err != nil {
		if health.Passing(err) {
			return "", err
		}
		return "", job.Unready("sandbox: %v", err)
	}
	plan.Shown = append(plan.Shown, mounts...)
	return top, nil
}

// homeOf names the private home of a launch. A judge that speaks in no session has one in which nobody wrote before.
func (e *Executor) homeOf(l order, p process, rest string) string {
	who := holder(e.Layout, l.key, rest)
	if name, _, _ := strings.Cut(rest, "#"); (p.judged.seat != nil || p.judged.alone) && who == name {
		return judgeHome(rest)
	}
	return who
}

// holder is whose private home a launch has: its step's or its gate's, or that of the session it speaks in. Nobody else's
// launch writes there, so that what one leaves (settings with hooks in them) starts with no other.
func holder(l layout.Layout, key, rest string) string {
	own := l.PIDFile(key) + programMark
	if p, ok := readProgram(filepath.Dir(own), filepath.Base(own)); ok && p.Session != "" {
		return sessionName(p.Session, p.Agent)
	}
	who, _, _ := strings.Cut(rest, "#")
	return who
}

// hidden are the folders of sluice's own of which a launch sees nothing.
func (e *Executor) hidden() []string {
	var out []string
	for _, dir := range append([]string{e.State}, e.opt.Hidden...) {
		if real, err := atomicfile.RealPath(dir); err == nil && real != "/" {
			out = append(out, real)
		}
	}
	return out
}

// variable gives a variable of the daemon's environment.
func (e *Executor) variable(name string) string {
	for _, kv := range slices.Backward(e.opt.Environ) {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}

// insideEnv is a launch's environment as it has to be inside.
func (e *Executor) insideEnv(env []string, plan sandbox.Plan, format string) []string {
	var out []string
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		switch {
		case slices.Contains([]string{"HOME", "TMPDIR", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CACHE_HOME"}, name):
			continue
		case name == "PATH":
			kv = "PATH=" + value + string(filepath.ListSeparator) + filepath.Dir(sandbox.Tool)
		case slices.Contains(program.HomeVars(), name):
			continue
		}
		out = append(out, kv)
	}
	out = append(out, "HOME="+plan.HomeInside(), "SLUICE_SANDBOX=1")
	for name, dir := range program.Homes(format) {
		out = append(out, name+"="+filepath.Join(plan.HomeInside(), dir))
	}
	slices.Sort(out)
	return out
}
