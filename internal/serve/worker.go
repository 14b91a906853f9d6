package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"sluice/agents/launch"
	"sluice/daemon"
	"sluice/internal/cluster"
	"sluice/internal/cluster/workers"
	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/git"
	"sluice/internal/health"
	"sluice/internal/ids"
	"sluice/internal/layout"
	"sluice/internal/settings"
	"sluice/internal/tree"
	"sluice/internal/worker"
	"sluice/internal/workspace"
	"sluice/journal"
)

// leading is this machine's part in a journal, with its workers.
type leading struct {
	*cluster.Member
	desk  *workers.Desk
	packs *cluster.Packs // of launches
}

// Report is the member's, with who works.
func (l leading) Report() daemon.Cluster {
	r := l.Member.Report()
	r.Desk = l.desk.Key()
	r.Stalled = cmp.Or(r.Stalled, l.packs.Stalled())
	for _, b := range l.desk.Workers() {
		w := daemon.Worker{ID: b.Worker, Name: b.Name, Version: b.Version, Labels: b.Labels, Slots: b.Slots, Since: b.Since,
			Draining: b.Draining, Foreign: b.Foreign, Twin: b.Twin, Stalled: b.Stalled}
		for _, d := range b.Launches {
			w.Launches = append(w.Launches, daemon.WorkerLaunch{Key: d.Key, Since: d.Since, Ended: d.Ended})
		}
		r.Workers = append(r.Workers, w)
	}
	return r
}

// part is a repo's part in a cluster; one in none has only leave.
type part struct {
	lead  daemon.Lead
	afar  launch.Afar
	drain func(ctx context.Context, worker string, drain bool) error
	packs *cluster.Packs
	leave func() error
}

// inCluster returns a repo's part in the cluster of a member; nil: it is in none.
func (w *Parts) inCluster(m *cluster.Member, root, state string, repo *git.Repo) (part, error) {
	if m == nil {
		return part{leave: func() error { return nil }}, nil
	}
	report := m.Report()
	packs := w.workers.Launches(report.Journal, w.conn)
	desk, err := workers.NewDesk(workers.DeskOptions{Conn: w.workers, Packs: packs,
		Layout: layout.Layout{Root: root, State: state}, Journal: report.Journal, By: report.Machine, Lead: m.Leads,
		Lease: m.Lease, Secret: m.Secret, Logf: w.logf("workers"),
		Pack: func(ctx context.Context, s launch.Sent, have []string) (string, error) {
			return packFor(ctx, repo, packs, s.Start, have)
		},
		Late: func(ctx context.Context, s launch.Sent, back launch.Back) (kept, why string, err error) {
			return keepLate(ctx, root, repo, packs, s, back)
		}})
	if err != nil {
		return part{}, err
	}
	return part{leading{m, desk, packs}, desk, desk.Drain, m.Packs(), desk.Close}, nil
}

// packFor stores a pack of a commit for a worker that has others.
func packFor(ctx context.Context, repo *git.Repo, packs *cluster.Packs, commit string, have []string) (string, error) {
	bases, err := repo.Peel(ctx, have)
	if err != nil {
		return "", err
	}
	bases = slices.DeleteFunc(bases, func(b string) bool { return b == "" }) // unknown here
	return packs.PutFrom(ctx, func(to io.Writer) error { return tree.Pack(ctx, repo, to, commit, bases...) })
}

// keepLate keeps the work of a launch that was given up: see workers.Late.
func keepLate(ctx context.Context, root string, repo *git.Repo, packs *cluster.Packs, s launch.Sent,
	back launch.Back) (kept, why string, err error) {
	// Late work is removed together with its run's folder. Only an order of this machine names that.
	folder, _, _ := strings.Cut(strings.TrimPrefix(s.Dir, layout.RunsDir+"/"), "/")
	if folder != "" && !layout.IsDir(filepath.Join(root, layout.RunsDir, folder)) {
		return "", "what was kept of its run has been removed", nil
	}
	l := tree.Late{Run: s.Run, Step: s.Step, N: s.N, K: s.Key[strings.LastIndexByte(s.Key, '.')+1:], Head: s.Head,
		Start: s.Start, Returned: tree.Returned{Commit: back.Commit, Tip: back.Tip}}
	pack, err := packs.Get(ctx, back.Pack)
	if none, ok := errors.AsType[*cluster.Unfit](err); ok && ctx.Err() == nil {
		return "", none.Error(), nil
	}
	if err != nil {
		return "", "", err
	}
	defer pack.Close()
	var no *tree.Refused
	ref, err := l.Keep(ctx, repo, pack)
	if errors.As(err, &no) {
		return "", no.Why, nil
	}
	if err != nil || ref == "" {
		return "", "", err
	}
	return l.Look(), "", nil
}

// Worker are the options of Work.
type Worker struct {
	Servers cluster.Servers
	Journal string // its id; "" = that of this repo
	Labels  []string
	Slots   int
	Desks   []string // public keys of who decides: nobody else is obeyed
	Rights  bool     // only print what the servers have to permit this worker
}

// Work makes the launches that whoever decides sends to this machine, in its clone of the repo, until
// ctx ends.
func Work(ctx context.Context, o Options, p *workspace.Workspace, in Worker) error {
	id, err := journalOf(p.State, in.Journal)
	if err != nil {
		return err
	}
	o.Cluster = &Cluster{Servers: in.Servers}
	if err := errors.Join(o.Cluster.unseen(p.Root), workspace.MakeState(p.State)); err != nil {
		return err
	}
	if in.Rights {
		return in.rights(o.Console, p.State, id)
	}
	if err := in.check(); err != nil {
		return err
	}
	return p.Locked(func() error {
		self, err := workers.ID(p.State)
		if err != nil {
			return err
		}
		o.Cluster.Servers.Inbox = workers.Inbox(self)
		w, err := New(o, newLogger(o.Console, o.Console.Err))
		if err != nil {
			return err
		}
		return errors.Join(w.work(ctx, p, id, in), w.Close())
	})
}

// check returns what is wrong with a worker's options.
func (in Worker) check() error {
	if in.Servers.URLs == "" {
		return fault.Misused("give --cluster nats://a,b,c", "--cluster is missing")
	}
	if why := ids.LabelsFault(in.Labels, 1); why != "" {
		return fault.Misused("give --labels linux,claude", "--labels: %s", why)
	}
	if in.Slots < 1 || in.Slots > workers.MaxSlots {
		return fault.Misused(fmt.Sprintf("give 1 to %d", workers.MaxSlots), "--slots %d", in.Slots)
	}
	const how = "`sluice workers`, on the machine that leads and on each standby, prints its key: --desk KEY"
	for _, k := range in.Desks {
		if !cluster.IsKey(k) {
			return fault.Misused(how, "--desk: %.80q is no public key of a user", k)
		}
	}
	if in.Servers.NKey != "" && len(in.Desks) == 0 {
		return fault.Misused(how, "--desk is missing: with --nkey, a worker obeys only signed orders")
	}
	return nil
}

// rights prints a worker as a user in the configuration of the servers.
func (in Worker) rights(con *console.Console, state, journal string) error {
	key, err := cluster.PublicKey(in.Servers.NKey)
	if err != nil {
		return err
	}
	if key == "" {
		return fault.Misused("give --nkey FILE", "--nkey is missing")
	}
	self, err := workers.ID(state)
	if err != nil {
		return err
	}
	con.Print("%s", workers.Rights(key, self, journal))
	return nil
}

// journalOf returns the id of the journal that a worker works for.
func journalOf(state, given string) (id string, err error) {
	if id = given; id == "" {
		if id, err = cluster.Marked(state); err != nil {
			return "", err
		}
	}
	if !journal.IsID(id) {
		return "", fault.Misused("give the id that `sluice cluster init` printed: --journal ID", "--journal is missing")
	}
	return id, nil
}

// work serves as a worker, until ctx ends and it has finished what it has. The caller holds the lock of
// the state folder.
func (w *Parts) work(ctx context.Context, p *workspace.Workspace, id string, in Worker) error {
	// The first Ctrl-C drains the worker; the second ends the process: see personal.Interrupted.
	leave, ctx := ctx.Done(), context.WithoutCancel(ctx)
	s, err := w.follow(p.Root)
	if err != nil {
		return err
	}
	defer s.Close()
	repo, err := openGit(ctx, p, git.NewTurns())
	if err != nil {
		return err
	}
	defer repo.Close()
	post, end, err := w.post(p, id, in, s.now, repo)
	if err != nil {
		return err
	}
	defer end()
	w.log.Info().Str("worker", post.ID()).Str("repo", p.Root).Str("journal", id).Strs("labels", in.Labels).
		Int("slots", in.Slots).Msg("the worker serves")
	return post.Run(ctx, leave)
}

// post returns the worker's parts, and what closes them.
func (w *Parts) post(p *workspace.Workspace, id string, in Worker, set func() settings.Settings,
	repo *git.Repo) (_ *workers.Post, end func(), err error) {
	tokens, notes := &worker.Tokens{}, &health.Notes{Log: w.logf("worker")}
	l := layout.Layout{Root: p.Root, State: p.State, Top: repo.Top(), Given: tokens.Given}
	if err := l.Open(); err != nil {
		return nil, nil, err
	}
	launches, err := launch.New(launch.Options{Runner: w.runner, PutDown: w.putDown, Now: w.Console.Now,
		CageOptions: launch.CageOptions{Layout: l, Notes: notes, Git: repo, Settings: set, Sandbox: w.box,
			Unheld: w.unheld, Environ: w.Console.Env, Hidden: w.hidden(), Self: w.Self, Inboxes: worker.NoInboxes{},
			Vacate: func(string) {}}})
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			launches.Close()
		}
	}()
	packs := w.conn.Launches(id, nil)
	post, err := workers.NewPost(workers.PostOptions{Conn: w.conn, State: p.State, Journal: id, Name: ThisMachine(),
		Version: w.Version, Labels: in.Labels, Slots: in.Slots, Desks: in.Desks, Logf: w.logf("worker"), Now: w.Console.Now,
		Stalled: func() string { return strings.Join(append(notes.All(), packs.Stalled())[:1], "") },
		Leaves: func(n int) {
			w.log.Info().Int("launches", n).Msg("the worker takes nothing new, and ends once these are done; " +
				"a second Ctrl-C ends it at once")
		},
		Maker: worker.New(worker.Options{Layout: l, Notes: notes, Tokens: tokens, Launches: launches, Git: repo,
			Packs: packs, Commands: slices.Contains(in.Labels, launch.Commands)})})
	return post, launches.Close, err
}

// DrainWorker has a worker finish what it has and take nothing new; or, without drain, take orders again.
func DrainWorker(ctx context.Context, con *console.Console, p *workspace.Workspace, id string, drain bool) error {
	s, err := p.NeedServing(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := s.Drain(ctx, id, drain); err != nil {
		return err
	}
	if drain {
		con.Print("it takes nothing new: `sluice workers` says \"drained\" once it has finished what it has")
		return nil
	}
	con.Print("it takes steps again")
	return nil
}
