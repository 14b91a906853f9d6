package launch

import (
	"cmp"
	"context"
	"os"
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

// contain puts a sandbox around the launch, or records that none holds it.
func (x *Cage) contain(ctx context.Context, l Order, p Process, spec *agents.Spec) error {
	run, _, _ := strings.Cut(l.Key, "/")
	box, err := x.Wanted()
	if err != nil {
		return err
	}
	if box == nil {
		_, why := x.Level("")
		return x.Expose(run, l.Key, why)
	}
	set := p.Who.Set
	if p.Who.Role == "" {
		set = x.opt.Settings().Role(settings.AnyRole)
	}
	network, rules := set.Reach(x.opt.Settings().Web.Port())
	if network == sandbox.NetHost {
		if err := x.Expose(run, l.Key, "its role has the machine's network (network: host)"); err != nil {
			return err
		}
	}
	if why, ok := x.opt.Unheld.any(); ok {
		if err := x.Expose(run, "", "beside it an agent worked that no sandbox held: "+why); err != nil {
			return err
		}
	}
	plan, err := x.plan(ctx, l, p, !box.Remaps())
	if err != nil {
		return err
	}
	if plan.HoldsHome() {
		if err := x.Expose(run, l.Key, "it can write to your home: what it leaves there runs when you log in"); err != nil {
			return err
		}
	}
	plan.Network = network
	plan.Ports = rules.Loopback()
	switch {
	case network == sandbox.NetProxy && !box.Remaps():
		if !rules.Web && len(plan.Ports) < len(rules.Hosts)+len(rules.Public) {
			return job.Unready("network: %s: single hosts cannot be held to on this system: want web, none, host, or "+
				"services of this machine", strings.Join(set.Network, ", "))
		}
	case network == sandbox.NetProxy:
		spec.Net = &rules
	}
	spec.Env = insideEnv(spec.Env, plan, p.Who.Agent.Format)
	if spec.Net != nil {
		spec.Env = append(spec.Env, rules.Vars()...)
	}
	spec.Env = slices.Concat(spec.Env, x.gitVars(l.Key, plan.InPlace), p.Judged.compiledApart(spec.Env, plan.HomeInside()))
	argv, err := x.Found(spec.Argv, spec.Env, p, &plan)
	if err != nil {
		return err
	}
	if spec.Cage, err = box.Wrap(plan, argv, spec.Env); err != nil {
		return job.Unready("sandbox: %v", err)
	}
	spec.Argv, spec.Env = nil, nil
	return nil
}

// plan returns what the launch may see.
func (x *Cage) plan(ctx context.Context, l Order, p Process, inPlace bool) (plan sandbox.Plan, err error) {
	run, _, _ := strings.Cut(l.Key, "/")
	cwd, err := atomicfile.RealPath(p.Cwd)
	if err == nil && p.Judged.Covers {
		cwd = p.Judged.Dir
	}
	if err != nil {
		return plan, job.Unready("folder %s: %v", x.Shown(p.Cwd), err)
	}
	hidden := x.hidden()
	plan = sandbox.Plan{InPlace: inPlace, Home: x.home(), Cwd: cwd,
		Hide:    append(slices.Clip(hidden), x.Path(engine.WorkspaceDir)),
		Inbox:   x.PIDFile(l.Key) + layout.InboxMark,
		Run:     run,
		Private: homeOf(x.Layout, l.Key, Holder(x.Layout, l.Key, p.Judged.Seat != nil || p.Judged.Alone))}
	for _, dir := range []string{plan.Inbox, filepath.Join(plan.Inbox, run), plan.Private} {
		if err := x.ahead.folder(dir); err != nil {
			return plan, err
		}
	}
	plan.Tools = x.tools(plan, hidden, p.Judged.Host == "")
	var top string
	writable := []string{l.Dir + "/" + layout.OwnDir}
	if p.Judged.Seat != nil {
		top = p.Judged.Top
		err = x.shownSeat(p.Judged, &plan)
	} else {
		writable = append(writable, x.RunDir(run)+"/files")
		top, err = x.shownTree(ctx, l.Key, p, cwd, &plan)
		// A launch must not answer the gates of another repo.
		for _, root := range x.opt.Unheld.rootsBelow(cmp.Or(top, x.Root), x) {
			plan.Shown = append(plan.Shown, sandbox.Mount{Path: root})
		}
	}
	if err != nil {
		return plan, err
	}
	if err := shownInboxes(&plan, x.Root, cwd, top); err != nil {
		return plan, err
	}
	for _, rel := range writable {
		if err := x.MakeBelow(rel, 0o700); err != nil {
			return plan, job.Unready("%v", err)
		}
		plan.Own = append(plan.Own, x.Path(rel))
	}
	own, err := x.MakeOwn(p.Writes)
	if err != nil {
		return plan, err
	}
	plan.Own = append(plan.Own, own...)
	return plan, seed(plan, p.Who.Agent.Format, x.Variable)
}

// shownInboxes shows the shared inboxes of the root and of the launch's folders, and creates those that are missing.
func shownInboxes(plan *sandbox.Plan, root, cwd, top string) error {
	for _, dir := range []string{root, cwd, top} {
		at := filepath.Join(dir, layout.WorkflowDir)
		inbox := filepath.Join(at, "signals")
		if dir == "" || slices.Contains(plan.Inboxes, inbox) {
			continue
		}
		for _, f := range []string{at, inbox} {
			if err := sandbox.NoLink(f); err != nil {
				return job.Unready("%v", err)
			}
		}
		if err := atomicfile.MkdirBelow(dir, inbox, 0o755); err != nil {
			return err
		}
		// Otherwise the main checkout is read-only anyway, and this would cover top.
		if top == "" || !sandbox.Inside(at, top) {
			plan.Shown = append(plan.Shown, sandbox.Mount{Path: at})
		}
		plan.Inboxes = append(plan.Inboxes, inbox)
	}
	return nil
}

// shownTree shows the launch's checkout, with a git folder of its own.
func (x *Cage) shownTree(ctx context.Context, key string, p Process, cwd string,
	plan *sandbox.Plan) (top string, err error) {
	if !x.opt.Git.Checkout() {
		plan.Shown = append(plan.Shown, sandbox.Mount{Path: x.Root, Write: true})
		return "", nil
	}
	top, err = git.Toplevel(cwd)
	if err != nil {
		return "", job.NoGit(x.Shown(cwd), err)
	}
	if layout.Inside(x.Path(engine.WorkspaceDir), cwd) && layout.Inside(top, x.Root) { // it would see a person's checkout
		return "", job.NoWorktree(x.Shown(cwd))
	}
	main := top
	if cwd != x.Root {
		if main, err = git.Toplevel(x.Root); err != nil {
			return "", job.NoGit(x.Shown(x.Root), err)
		}
	}
	own, err := x.OwnGit(ctx, key, top, p.Work, plan.InPlace)
	if err != nil {
		if health.Passing(err) || ctx.Err() != nil {
			return "", err
		}
		return "", job.NoGit(x.Shown(top), err)
	}
	c, err := x.checkoutOf(own, main, plan.InPlace)
	if err != nil {
		return "", job.NoGit(x.Shown(top), err)
	}
	c.Linked = append(c.Linked, keptRepos(own, p.Judged.Repos, plan.Tools)...)
	x.workedIn(key, own)
	if around := x.reached(c); around != "" {
		same, err := sandbox.Identify(around, top)
		if err != nil {
			return "", job.Unready("worktree %s: %v", x.Shown(top), err)
		}
		plan.Same = append(plan.Same, same)
	}
	mounts, err := c.Mounts()
	if err != nil {
		return "", health.PassingOr(err, job.Unready("sandbox: %v", err))
	}
	plan.Shown = append(plan.Shown, mounts...)
	return top, nil
}

// keptRepos returns the repositories inside the checkout that a launch must leave as they are: no
// work has their files, and a person's git in one runs what its settings name. Of submodules only
// the git folders are protected; what the settings let agents write is not.
func keptRepos(g tree.Private, repos []string, tools []sandbox.Mount) (dirs []string) {
	for _, rel := range repos {
		dir := filepath.Join(g.Top, filepath.FromSlash(rel))
		own := slices.ContainsFunc(g.Submodules, func(s git.Submodule) bool { return s.Path == dir }) ||
			slices.ContainsFunc(tools, func(m sandbox.Mount) bool { return m.Write && sandbox.Inside(m.Path, dir) })
		// A link in its place would have something else mounted.
		if real, err := filepath.EvalSymlinks(dir); !own && err == nil && real == dir {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// insideEnv returns a launch's environment inside the sandbox.
func insideEnv(env []string, plan sandbox.Plan, format string) []string {
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

// shownSeat shows a held judge its checkout in place of the agent's, and the repo's objects.
func (x *Cage) shownSeat(j Judged, plan *sandbox.Plan) error {
	stores, err := x.opt.Git.Stores()
	if err != nil {
		return job.Unready("%v", err)
	}
	if !layout.Inside(j.Seat.Top, j.Dir) && !layout.Inside(j.Top, x.Root) {
		plan.Shown = append(plan.Shown, sandbox.Mount{Path: x.Root})
	}
	plan.Shown = append(plan.Shown, sandbox.Mount{Path: j.Seat.Top, At: j.Top, Write: !j.Reads})
	if !j.Covers {
		return nil
	}
	for i, dir := range stores {
		plan.Shown = append(plan.Shown, sandbox.Mount{Path: dir, At: sandbox.StoreAt(i)})
		if _, err := os.Lstat(filepath.Join(dir, "info", "alternates")); err == nil { // all of them are named already
			plan.Shown = append(plan.Shown,
				sandbox.Mount{Path: os.DevNull, At: filepath.Join(sandbox.StoreAt(i), "info", "alternates")})
		}
	}
	for _, m := range j.Made {
		plan.Shown = append(plan.Shown, sandbox.Mount{Path: m.At, At: filepath.Join(j.Dir, filepath.FromSlash(m.Path))})
	}
	for _, dir := range []string{j.Dir, j.Top} {
		if at := layout.InboxOf(dir); dir != x.Root && !slices.Contains(plan.Inboxes, at) {
			plan.Inboxes = append(plan.Inboxes, at)
		}
	}
	return nil
}
