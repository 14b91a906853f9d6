package serve

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"sluice/daemon"
	"sluice/internal/cluster"
	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/git"
	"sluice/internal/layout"
	"sluice/internal/text"
	"sluice/internal/travel"
	"sluice/internal/workspace"
	"sluice/internal/world"
)

// Cluster has the journals of all repos of a daemon in streams too.
type Cluster struct {
	Servers cluster.Servers
	Standby bool // leave it to other machines to lead first
	// Workers is the nkey of an account of the same servers in which the workers are: they then reach
	// nothing of the journals. "" = they are in the account of the journals.
	Workers string
}

// connect returns the connection to the servers, and that to the workers; nil: this machine is alone.
func (c *Cluster) connect(logf func(string, ...any)) (servers, toWorkers *cluster.Conn, err error) {
	if c == nil || c.Servers.URLs == "" {
		return nil, nil, nil
	}
	to := c.Servers
	to.Logf = logf
	if servers, err = cluster.Connect(to); err != nil || c.Workers == "" {
		return servers, servers, err
	}
	apart := to
	apart.NKey = c.Workers
	if toWorkers, err = cluster.Connect(apart); err != nil {
		servers.Close()
		return nil, nil, err
	}
	return servers, toWorkers, nil
}

// unseen returns an error where a key is in a repo, whose agents can read it there.
func (c *Cluster) unseen(root string) error {
	if c == nil {
		return nil
	}
	for _, file := range []string{c.Servers.NKey, c.Workers} {
		at, err := filepath.Abs(file)
		if err == nil {
			at, err = filepath.EvalSymlinks(at)
		}
		if file != "" && err == nil && layout.Inside(root, at) {
			return fault.Failed("move it out of the repo, for example to your home, and replace it if agents have worked here",
				"the key %s is in %s, where agents can read it", file, root)
		}
	}
	return nil
}

// ThisMachine names this process for people on other machines.
func ThisMachine() string {
	host, err := os.Hostname()
	if err != nil {
		host = "a machine without a name"
	}
	return fmt.Sprintf("%s (pid %d)", host, os.Getpid())
}

// lead returns this machine's part in a repo's journal; nil: this machine alone keeps it. What is
// recorded in a stream is never served without it, nor the other way round.
func (w *Parts) lead(root, state string) (*cluster.Member, error) {
	id, err := cluster.Marked(state)
	switch {
	case err != nil:
		return nil, err
	case id == "" && w.conn == nil:
		return nil, nil
	case id == "":
		return nil, fault.Failed("run `sluice cluster init` there, or `sluice cluster join` if another machine has it; or "+
			"take it off this daemon with `sluice watch rm`", "%s belongs to no cluster yet", root)
	case w.conn == nil:
		return nil, fault.Failed("start `sluice daemon --cluster URLS`; `sluice cluster leave` lets this machine "+
			"continue alone", "%s belongs to a cluster, so its record is not kept by this machine alone", root)
	}
	return w.conn.Member(cluster.Options{ID: id, By: ThisMachine(), Standby: w.Cluster.Standby, Now: w.Console.Now,
		Logf: w.logf("cluster")}), nil
}

// traveling has the work of runs travel with a journal that several machines keep.
func traveling(c part, w *world.World, repo *git.Repo, opt daemon.RepoOptions) daemon.RepoOptions {
	if c.lead == nil {
		return opt
	}
	x := travel.New(travel.Options{Layout: w.Layout, Notes: &w.Notes, Git: repo, Packs: c.packs}).World(w)
	opt.Lead, opt.World, opt.Brought, opt.Drain = c.lead, x, x.Brought, c.drain
	return opt
}

// Begin are the options of BeginCluster.
type Begin struct {
	Servers  cluster.Servers
	Replicas int
	Lease    time.Duration
}

// BeginCluster begins the stream of a repo's journal, and prints what to run next.
func BeginCluster(ctx context.Context, con *console.Console, p *workspace.Workspace, o Begin) error {
	if o.Replicas < 1 || o.Replicas > 5 {
		return fault.Misused("give 1 to 5", "--replicas %d", o.Replicas)
	}
	return withServers(p, o.Servers, func(c *cluster.Conn) error {
		root, err := rootOf(ctx, p)
		if err != nil {
			return err
		}
		b, err := c.Begin(ctx, member(con, ""), p.State, cluster.New{Replicas: o.Replicas, Lease: o.Lease, Root: root})
		if err != nil {
			return err
		}
		if con.JSON {
			return con.Document(map[string]any{"journal": b.ID, "records": b.Records})
		}
		hosts, worker := o.Servers.Typed(), o.Servers
		if worker.NKey != "" { // not the daemons' key
			worker.NKey = "FILE --desk KEY"
		}
		con.Print("the stream has the journal: %s", text.Plural(int(b.Records), "record"))
		con.Print("here:            sluice watch add && sluice daemon --cluster %s", hosts)
		con.Print("another machine: sluice cluster join %s %s", b.ID, hosts)
		con.Print("a worker:        sluice worker --cluster %s --journal %s --labels LABELS", worker.Typed(), b.ID)
		return nil
	})
}

// JoinCluster has this machine keep a journal that another one began.
func JoinCluster(ctx context.Context, con *console.Console, p *workspace.Workspace, id string,
	s cluster.Servers) error {
	return withServers(p, s, func(c *cluster.Conn) error {
		clone := func(root string) error { return cloneOf(ctx, p, root) }
		if err := c.Join(ctx, member(con, id), p.State, clone); err != nil {
			return err
		}
		con.Print("joined: sluice watch add && sluice daemon --cluster %s --standby", s.Typed())
		return nil
	})
}

// rootOf returns a first commit of the repo's history; "" = it has none, or no git.
func rootOf(ctx context.Context, p *workspace.Workspace) (root string, err error) {
	if p.Plain {
		return "", nil
	}
	repo, err := p.Open(ctx)
	if err != nil {
		return "", err
	}
	head, err := repo.Head(ctx, p.Root)
	if err == nil && head != "" {
		root, err = repo.Root(ctx, head)
	}
	return root, errors.Join(err, repo.Close())
}

// cloneOf returns an error unless the repo is a clone of the one whose history begins with root.
func cloneOf(ctx context.Context, p *workspace.Workspace, root string) error {
	const advice = "run it in a clone of the repo whose journal this is, or check the id"
	if p.Plain {
		return fault.Failed(advice, "%s is no clone of the repo that the journal is of: it is no git repository", p.Root)
	}
	repo, err := p.Open(ctx)
	if err != nil {
		return err
	}
	lacks, err := repo.Lacks(ctx, root)
	if err == nil && lacks {
		err = fault.Failed(advice, "%s is no clone of the repo that the journal is of: it has no commit %.40s, with which "+
			"that one begins", p.Root, root)
	}
	return errors.Join(err, repo.Close())
}

// LeaveCluster lets this machine continue alone, after a yes.
func LeaveCluster(con *console.Console, p *workspace.Workspace) error {
	yes, err := con.Ask("Continue alone with the journal of " + p.Root + "?")
	if err != nil {
		return err
	}
	if !yes {
		return fault.Exit(fault.ExitFailed)
	}
	return p.Locked(func() error { return cluster.Leave(p.State, member(con, "")) })
}

func member(con *console.Console, id string) cluster.Options {
	return cluster.Options{ID: id, By: ThisMachine(), Now: con.Now, Logf: con.Note}
}

// withServers runs do with a connection, while no process serves the repo.
func withServers(p *workspace.Workspace, s cluster.Servers, do func(*cluster.Conn) error) error {
	if err := workspace.MakeState(p.State); err != nil {
		return err
	}
	c, err := cluster.Connect(s)
	if err != nil {
		return err
	}
	defer c.Close()
	return p.Locked(func() error { return do(c) })
}
