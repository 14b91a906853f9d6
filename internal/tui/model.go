package tui

import (
	"context"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"sluice/daemon"
	"sluice/internal/press"
)

type mode int

const (
	browsing  mode = iota // the list
	reading               // a page: from show, the help, or an agent's words
	writing               // words for a fail or a veto
	filtering             // the filter's words
	asking                // a yes-or-no question
)

// Pace and limits of the screen.
const (
	tickLive   = time.Second      // between two drawings while something runs: times grow
	tickIdle   = 10 * time.Second // and while nothing does
	saidFor    = 12 * time.Second // how long an answer to a key stays
	foldedOver = 8                // with more live runs, each is folded to one line
	wordsMost  = 20               // agents on the screen whose last words are read at once
)

// Model is the screen. Only messages change it.
type Model struct{ paging }

type (
	paging   struct{ deciding } // pages over the list
	deciding struct{ listing }  // what a person decides, types and confirms
	listing  struct{ drawing }  // the rows, and the cursor among them
	drawing  struct{ known }    // the lines of the screen
)

// known is what the screen is made from.
type known struct {
	ctx  context.Context
	host Host
	one  *one // the run that the screen is about; nil = all runs
	now  func() time.Time
	send func(any) // takes later messages: an agent's lines

	width, height int
	light         bool // the terminal's background is light
	ticks         int  // of the newest tick
	pace          time.Duration
	mode          mode
	repos         []*repo
	note          string // what is wrong overall
	loaded        bool   // something is known
	rows          []row
	stale         bool                        // the rows must be created again
	at            int                         // the row under the cursor
	chosen        bool                        // the person has moved it
	first         int                         // the first row on the screen
	reveal        bool                        // a run was unfolded: show its rows
	guard         press.Guard                 // which keys may decide
	wake          func(time.Duration) tea.Cmd // draws the screen again after a while
	folds         map[runKey]bool             // unfolded, where the person chose
	filter        string
	rung          map[sense]bool // asking rounds for which the bell rang
	words         wordsSeen
	listening     bool // words are being read

	page    *pageView
	input   input
	unsent  input // the last words that were typed; they are there again until they have counted
	ask     question
	pending int // decisions on their way
	leaving bool
	said    string
	saidAt  time.Time
}

type repo struct {
	root, name string
	served     bool
	known      bool
	lost       string // why it cannot be read
	lostAt     time.Time
	status     daemon.Status // without its runs
	runs       map[string]*daemon.RunStatus
	order      []string // oldest first
}

// decides reports whether a decision in the repo can count: a process serves it, as far as is known.
func (r *repo) decides() bool { return r.served || !r.known }

type runKey struct{ root, run string }

// all returns the runs, the oldest first.
func (r *repo) all() iter.Seq[*daemon.RunStatus] {
	return func(yield func(*daemon.RunStatus) bool) {
		for _, id := range r.order {
			if !yield(r.runs[id]) {
				return
			}
		}
	}
}

// tick draws the screen again as time passes. Only the newest counts.
type tick struct{ n int }

type decided struct {
	what    string
	done    daemon.Done
	err     error
	answer  bool   // to a gate
	counted func() // called if it counts; nil = nothing to do
}

// wordsSeen are agents' last words, by the key of their row.
type wordsSeen map[rowKey]string

type redraw struct{}

func newModel(ctx context.Context, host Host, now func() time.Time, send func(any)) *Model {
	wake := func(d time.Duration) tea.Cmd { return tea.Tick(d, func(time.Time) tea.Msg { return redraw{} }) }
	m := &Model{}
	m.known = known{ctx: ctx, host: host, now: now, send: send, wake: wake, width: 80, height: 24,
		folds: map[runKey]bool{}, words: wordsSeen{}, stale: true}
	return m
}

// Init asks the terminal for its background, and starts ticking.
func (m *Model) Init() tea.Cmd { return tea.Batch(tea.RequestBackgroundColor, m.tick()) }

// tick draws the screen again after a while: sooner while something runs.
func (m *Model) tick() tea.Cmd {
	m.ticks++
	n := m.ticks
	m.pace = m.paceNow()
	return tea.Tick(m.pace, func(time.Time) tea.Msg { return tick{n} })
}

func (m *known) paceNow() time.Duration {
	for _, r := range m.repos {
		for run := range r.all() {
			if run.Live() {
				return tickLive
			}
		}
	}
	return tickIdle
}

// hurry ticks faster if something runs now and nothing did.
func (m *Model) hurry() tea.Cmd {
	if m.paceNow() >= m.pace {
		return nil
	}
	return m.tick()
}

func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var cmd tea.Cmd
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.BackgroundColorMsg:
		m.light = !msg.IsDark()
	case tea.KeyPressMsg:
		cmd = m.press(msg)
	case tea.PasteMsg:
		m.guard.Read("", false, m.now())
		m.paste(msg.Content)
	case tea.ResumeMsg:
		m.hidden()
	case tick:
		if msg.n == m.ticks { // an older one was replaced
			cmd = tea.Batch(m.tick(), m.listen())
		}
	case reposSeen:
		m.seeRepos(msg)
	case repoSeen:
		m.seeRepo(msg)
		m.layOut()
		if m.one.over(&m.known) {
			return m, tea.Quit
		}
		cmd = tea.Batch(m.ring(), m.listen(), m.hurry(), m.one.begin(m))
	case repoLost:
		if m.one != nil && !m.one.alone() {
			return m, tea.Quit
		}
		if r := m.repo(msg.root); r != nil {
			r.served, r.lost, r.lostAt, m.loaded = false, msg.why, m.now(), true
		}
	case factsSeen:
		m.one.facts = msg
	case graphSeen:
		m.one.graph = msg
	case wordsSeen:
		m.listening, m.words = false, msg
	case decided:
		cmd = m.seeDecided(msg)
	case commented:
		cmd = msg.send(&m.deciding)
	case signed:
		cmd = msg.send(&m.deciding)
	case paged:
		if m.hidden(); msg.err != nil {
			m.tell(msg.err.Error())
		}
	case pageSeen:
		m.seePage(msg)
	case lineSaid:
		m.seeLine(msg)
	}
	m.layOut()
	m.guard.Draw(m.offer(), m.now())
	return m, cmd
}

func (m *known) repo(root string) *repo {
	for _, r := range m.repos {
		if r.root == root {
			return r
		}
	}
	return nil
}

// run returns a run of a repo; nil if it is unknown by now.
func (m *known) run(root, id string) *daemon.RunStatus {
	if r := m.repo(root); r != nil {
		return r.runs[id]
	}
	return nil
}

// seeRepos sets the list of repos, and keeps the state of those that stay.
func (m *Model) seeRepos(msg reposSeen) {
	m.note, m.stale = msg.note, true
	if len(msg.roots) == 0 {
		m.loaded = true
	}
	var out []*repo
	for _, root := range msg.roots {
		r := m.repo(root)
		if r == nil {
			r = &repo{root: root, runs: map[string]*daemon.RunStatus{}}
		}
		r.name = nameOf(root, msg.roots)
		out = append(out, r)
	}
	m.repos = out
}

// nameOf returns as much of the end of a repo's path as tells it from the others.
func nameOf(root string, all []string) string {
	for at := len(root); at > 0; {
		at = strings.LastIndexByte(root[:at], filepath.Separator)
		end := root[max(at, 0):]
		if !slices.ContainsFunc(all, func(o string) bool { return o != root && strings.HasSuffix(o, end) }) {
			return strings.TrimPrefix(end, string(filepath.Separator))
		}
	}
	return root
}

func (m *Model) seeRepo(msg repoSeen) {
	r := m.repo(msg.root)
	if r == nil {
		return // it has left the list meanwhile
	}
	m.loaded, m.stale = true, true
	r.served, r.known, r.lost = msg.served, true, ""
	runs := msg.status.Runs
	msg.status.Runs = nil
	r.status = msg.status
	if msg.whole && (len(runs) > 0 || r.status.Stalled == "") { // a stalled one may report none
		clear(r.runs)
		r.order = r.order[:0]
	}
	for i := range runs {
		if r.runs[runs[i].ID] == nil {
			r.order = append(r.order, runs[i].ID)
		}
		r.runs[runs[i].ID] = &runs[i]
	}
	for _, id := range msg.dropped {
		if r.runs[id] != nil && !msg.whole {
			delete(r.runs, id)
			r.order = slices.DeleteFunc(r.order, func(x string) bool { return x == id })
		}
	}
}

// ring rings the bell once for each round that asks a person.
func (m *known) ring() tea.Cmd {
	news, asks := false, map[sense]bool{}
	for i := range m.rows {
		if r := &m.rows[i]; r.kind == waitRow && r.wait.Kind == "human" {
			news = news || !m.rung[r.sense()]
			asks[r.sense()] = true
		}
	}
	if m.rung = asks; !news {
		return nil
	}
	return tea.Raw("\a")
}

// listen reads the last words of the agents on the screen, one read at a time.
func (m *Model) listen() tea.Cmd {
	if m.listening || m.mode == reading {
		return nil
	}
	type agent struct {
		key             rowKey
		root, run, what string
	}
	var agents []agent
	for _, r := range m.visible() {
		if what := r.talks(); what != "" && len(agents) < wordsMost {
			agents = append(agents, agent{r.key(), r.repo.root, r.run.ID, what})
		}
	}
	if len(agents) == 0 {
		return nil
	}
	m.listening = true
	return func() tea.Msg {
		out := wordsSeen{}
		for _, a := range agents {
			if s := m.host.Words(m.ctx, a.root, a.run, a.what); s != "" {
				out[a.key] = s
			}
		}
		return out
	}
}

func (m *Model) seeDecided(d decided) tea.Cmd {
	m.pending--
	counted := false
	switch {
	case d.err != nil:
		m.tell(d.what + " was not accepted: " + d.err.Error())
	case d.done.Ignored != "":
		m.tell(d.what + " did not count: " + d.done.Ignored)
	case d.done.Void():
		m.tell(d.what + " did not count: what was reviewed has changed since; decide again when it is checked")
	default:
		m.tell(d.what + ": taken in")
		if counted = true; d.counted != nil {
			d.counted()
		}
		m.leaving = m.leaving || d.answer && m.one.alone()
	}
	if m.leaving && m.pending == 0 {
		m.one.keep(m.said, counted)
		return tea.Quit
	}
	return nil
}
