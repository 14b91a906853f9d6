package tidy

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"sluice/tools/conform"
)

// layers says what of this module each package may import, and which of the libraries belong to one place. A package
// that is not named here may not exist: where it belongs is decided first.
var layers = map[string]struct{ own, only []string }{
	"engine":  {own: []string{"internal/ids", "internal/text"}},
	"journal": {own: []string{"internal/fault", "internal/ids", "internal/strictjson"}},
	"daemon":  {own: []string{"internal/fault", "engine", "journal", "internal/job", "internal/atomicfile", "internal/findings", "internal/health", "internal/strictjson", "internal/text"}, only: []string{"github.com/rs/zerolog", "golang.org/x/sys"}},
	"watcher": {own: []string{"internal/alarm", "internal/fault", "internal/atomicfile", "internal/git"}, only: []string{"github.com/fsnotify/fsnotify", "golang.org/x/sys"}},
	// Inboxes: read, watched, and emptied of what was taken in.
	"watcher/inbox": {own: []string{"engine", "signals", "watcher", "internal/approval", "internal/atomicfile", "internal/fault", "internal/health", "internal/ids", "internal/job", "internal/layout"}},
	// Commits and pull requests that say an attempt is done.
	"watcher/triggers": {own: []string{"engine", "internal/atomicfile", "internal/forge", "internal/git", "internal/health", "internal/job", "watcher"}},
	"watcher/refs":     {own: []string{"engine", "signals", "watcher", "internal/atomicfile", "internal/fault", "internal/git", "internal/health", "internal/job", "internal/layout", "internal/stub", "internal/text", "internal/tree"}},
	"signals":          {own: []string{"internal/findings", "internal/ids", "internal/strictjson", "internal/text"}},
	"gates":            {own: []string{"engine", "internal/fault", "internal/findings", "internal/layout", "internal/schema", "internal/shells", "internal/strictjson", "internal/text"}},
	// What an agent is asked. It takes criteria and findings as gates reads them; gates judges, and does not know what was asked.
	"internal/prompt": {own: []string{"engine", "gates", "internal/atomicfile", "internal/fault", "internal/findings", "internal/layout", "internal/settings", "internal/text"}},
	// Where those work who judge: checkouts that sluice keeps.
	"gates/checkouts": {own: []string{"internal/atomicfile", "internal/git"}, only: []string{"golang.org/x/sys"}},
	"agents":          {own: []string{"internal/fault", "internal/atomicfile", "internal/health", "agents/egress", "agents/sandbox"}, only: []string{"golang.org/x/sys"}},
	"agents/launch":   {own: []string{"agents", "agents/program", "agents/sandbox", "engine", "gates", "gates/checkouts", "internal/atomicfile", "internal/fault", "internal/git", "internal/health", "internal/job", "internal/layout", "internal/memo", "internal/prompt", "internal/settings", "internal/stub", "internal/text", "internal/tree"}},
	"agents/program":  {own: []string{"internal/text"}},
	"agents/egress":   {},
	"agents/sandbox":  {own: []string{"internal/fault", "internal/text"}, only: []string{"golang.org/x/net/bpf", "golang.org/x/sys"}},
	"notify":          {own: []string{"internal/fault", "internal/health", "internal/text"}, only: []string{"github.com/gen2brain/beeep", "github.com/godbus/dbus", "golang.org/x/sys"}},
	"specs":           {own: []string{"internal/fault", "internal/ids", "engine", "internal/layout", "internal/schema", "internal/shells", "internal/stub", "internal/text", "internal/cron"}, only: []string{"gopkg.in/yaml.v3", "github.com/expr-lang/expr"}},
	"specs/graph":     {own: []string{"engine", "internal/text"}},
	// What a person signs, and whether it holds: the one place of signatures.
	"internal/approval": {own: []string{"internal/fault", "internal/ids", "internal/layout", "internal/text", "internal/atomicfile", "internal/strictjson", "internal/findings"}, only: []string{"golang.org/x/crypto/ssh"}},
	// How a person registers a passkey and decides with it, for a page.
	"internal/approval/passkey": {own: []string{"engine", "internal/approval", "internal/atomicfile", "internal/fault", "internal/ids", "internal/strictjson", "internal/text"}},
	// Whether the record of what was decided is whole.
	"internal/audit": {own: []string{"daemon", "engine", "internal/approval", "internal/atomicfile", "internal/console", "internal/fault", "internal/layout", "internal/render", "internal/text", "journal", "specs"}},
	// Evidence for those who have only the commits. The policy is YAML, and read here alone.
	"internal/evidence":   {own: []string{"engine", "gates", "internal/approval", "internal/atomicfile", "internal/audit", "internal/fault", "internal/git", "internal/layout", "internal/strictjson", "internal/text", "internal/tree", "journal", "specs"}, only: []string{"gopkg.in/yaml.v3"}},
	"internal/alarm":      {only: []string{"golang.org/x/sys"}},
	"internal/atomicfile": {only: []string{"golang.org/x/sys"}},
	"internal/git/index":  {},
	"internal/git":        {own: []string{"internal/fault", "internal/git/index", "internal/memo", "internal/text", "internal/atomicfile"}, only: []string{"golang.org/x/sys"}},
	// The work of an attempt as a git commit: taken, judged, advanced to the branch, landed.
	"internal/tree": {own: []string{"internal/fault", "internal/layout", "internal/text", "internal/atomicfile", "internal/git"}, only: []string{"golang.org/x/text"}},
	// The folders in which attempts work: where they begin, what of them is taken, where that goes.
	"internal/folders":    {own: []string{"engine", "gates", "internal/atomicfile", "internal/fault", "internal/git", "internal/health", "internal/ids", "internal/job", "internal/layout", "internal/memo", "internal/settings", "internal/shells", "internal/tasks", "internal/text", "internal/tree"}},
	"internal/strictjson": {},
	// The one compiler of answers' schemas: what the specs' reader takes, the gates' takes.
	"internal/cron":   {only: []string{"github.com/robfig/cron/v3"}},
	"internal/schema": {own: []string{"internal/strictjson", "internal/text"}, only: []string{"github.com/santhosh-tekuri/jsonschema"}},
	"internal/shells": {},
	// Text of others, made fit to be shown.
	"internal/text": {},
	// What is wrong with work, by file and line: a reviewer's findings, a person's comments.
	"internal/findings": {own: []string{"internal/strictjson", "internal/text"}},
	// The sheet on which a person comments on changes.
	"internal/review": {own: []string{"internal/fault", "internal/findings", "internal/text"}},
	// The person's own pager and editor.
	"internal/personal": {own: []string{"internal/console", "internal/fault", "internal/git"}},
	// Texts that attack, for the tests of whatever shows text.
	"internal/text/hostile": {},
	"internal/ids":          {},
	"internal/memo":         {},
	// The error for people; a package below may make one, so it imports nothing.
	"internal/fault": {},
	// What stand-ins do in place of agents: the spec's reader makes it of a file, work takes parts of it.
	"internal/stub": {own: []string{"engine"}},
	// A stand-in at work, as the process that a launch starts.
	"internal/stub/play": {own: []string{"internal/atomicfile", "internal/console", "internal/fault", "internal/job", "internal/stub", "internal/text"}},
	// The keys of config.yaml: what they mean, whether they are right, which of them a project may set, and their layers.
	// The libraries that read and merge them belong to this one place.
	"internal/settings": {own: []string{"agents/egress", "agents/program", "agents/sandbox", "engine", "internal/atomicfile", "internal/fault", "internal/ids", "internal/layout", "internal/shells", "internal/text", "notify", "specs"},
		only: []string{"github.com/go-viper/mapstructure/v2", "github.com/knadh/koanf", "gopkg.in/yaml.v3"}},
	// A forge, asked by gh.
	"internal/forge": {own: []string{"internal/fault", "internal/text"}},
	// The pull request of a run: opened, judged, followed.
	"internal/pulls": {own: []string{"engine", "internal/fault", "internal/findings", "internal/forge", "internal/git", "internal/health", "internal/job", "internal/layout", "internal/text", "internal/tree"}},
	// What is not as it should be, and trying again.
	"internal/health": {},
	// Where the files of a repo are, and by which names.
	"internal/layout": {own: []string{"internal/atomicfile", "internal/job", "engine"}},
	"internal/job":    {own: []string{"engine", "internal/stub", "internal/shells"}},
	"internal/tasks":  {own: []string{"internal/strictjson"}},
	// The service manager, and the library that knows which one there is, belong to one place.
	"deploy": {own: []string{"daemon", "internal/atomicfile", "internal/fault", "internal/text"}, only: []string{"github.com/kardianos/service"}},
	// The protocol of an orchestrating agent belongs to one place.
	// A journal in a stream beside its file: append, follow, take the lead.
	// Launches on other machines: orders to workers and what comes back, over the servers.
	"internal/cluster/workers": {own: []string{"agents/launch", "engine", "internal/atomicfile", "internal/cluster", "internal/fault", "internal/git", "internal/health", "internal/ids", "internal/layout", "internal/strictjson", "internal/text", "journal"}, only: []string{"github.com/nats-io/nats.go"}},
	// A worker: makes what it is sent with the code that a daemon launches with.
	"internal/worker":  {own: []string{"agents/launch", "engine", "internal/atomicfile", "internal/git", "internal/health", "internal/job", "internal/layout", "internal/strictjson", "internal/tree"}},
	"internal/cluster": {own: []string{"daemon", "internal/atomicfile", "internal/fault", "internal/health", "internal/ids", "internal/strictjson", "internal/text", "journal"}, only: []string{"github.com/nats-io/nats.go", "github.com/nats-io/nkeys"}},
	"internal/mcp":     {own: []string{"internal/ids", "internal/strictjson", "internal/text", "daemon", "engine", "signals"}, only: []string{"github.com/modelcontextprotocol/go-sdk"}},
	// Who is told, reminded and answered.
	"notify/people": {own: []string{"daemon", "engine", "internal/health", "internal/job", "internal/text", "notify"}},
	// What people are shown is called the same by the commands, the screen and the notices. Foreign text is cleaned as a notice's is.
	"internal/render": {own: []string{"daemon", "engine", "internal/console", "internal/findings", "internal/form", "internal/text", "specs/graph"}},
	// What a command talks through. It knows nothing of workflows.
	"internal/console": {own: []string{"internal/fault", "internal/strictjson", "internal/text"}, only: []string{"github.com/charmbracelet/x/ansi", "github.com/spf13/cobra", "github.com/spf13/pflag", "golang.org/x/term", "rsc.io/qr"}},
	// Workflows of other tools, as specs of ours.
	"internal/importer": {own: []string{"internal/atomicfile", "internal/fault", "internal/ids", "internal/layout", "internal/shells", "internal/text", "specs"}, only: []string{"gopkg.in/yaml.v3"}},
	// What sluice needs of a machine and of a repo, whose settings are handed in.
	"internal/doctor": {own: []string{"agents", "agents/program", "agents/sandbox", "engine", "internal/approval", "internal/atomicfile", "internal/console", "internal/fault", "internal/layout", "internal/render", "internal/settings", "internal/text", "journal", "notify", "specs"}},
	// The first files of a repo, and the demo's.
	"internal/setup": {own: []string{"agents", "agents/program", "engine", "internal/atomicfile", "internal/console", "internal/fault", "internal/layout", "internal/prompt", "internal/show", "internal/text", "internal/workspace", "signals", "specs"}},
	// Which keys decide: the one place of that rule.
	"internal/press": {own: []string{"internal/text"}},
	// How a person is asked for an answer, wherever that is.
	"internal/form": {own: []string{"internal/text", "internal/schema"}},
	// What commands show of runs.
	"internal/stats": {own: []string{"engine"}},
	"internal/show":  {own: []string{"agents", "agents/launch", "agents/program", "daemon", "deploy", "engine", "gates", "internal/atomicfile", "internal/console", "internal/fault", "internal/findings", "internal/form", "internal/git", "internal/ids", "internal/land", "internal/layout", "internal/personal", "internal/press", "internal/prompt", "internal/render", "internal/review", "internal/schema", "internal/settings", "internal/stats", "internal/text", "internal/tree", "internal/workflows", "internal/workspace", "specs"}},
	// The work of a run onto a person's branch.
	"internal/land": {own: []string{"daemon", "engine", "internal/console", "internal/fault", "internal/folders", "internal/git", "internal/layout", "internal/pulls", "internal/render", "internal/text", "internal/tree"}},
	// The repo that a command is about: where its state and settings lie, and who knows how its runs stand.
	"internal/workspace": {own: []string{"daemon", "engine", "internal/atomicfile", "internal/console", "internal/fault", "internal/git", "internal/health", "internal/ids", "internal/layout", "internal/settings", "internal/text", "journal", "specs"}},
	// A daemon made of all its parts.
	"internal/travel": {own: []string{"daemon", "engine", "internal/atomicfile", "internal/cluster", "internal/fault", "internal/git", "internal/health", "internal/job", "internal/layout", "internal/strictjson", "internal/tree"}},
	"internal/serve":  {own: []string{"agents", "agents/launch", "agents/sandbox", "daemon", "deploy", "engine", "internal/alarm", "internal/atomicfile", "internal/cluster", "internal/cluster/workers", "internal/console", "internal/fault", "internal/git", "internal/health", "internal/ids", "internal/layout", "internal/settings", "internal/text", "internal/travel", "internal/tree", "internal/worker", "internal/workflows", "internal/workspace", "internal/world", "journal", "notify", "watcher", "web"}, only: []string{"github.com/rs/zerolog"}},
	// A person's decision at a gate.
	"internal/decide": {own: []string{"daemon", "engine", "internal/approval", "internal/atomicfile", "internal/console", "internal/fault", "internal/findings", "internal/form", "internal/ids", "internal/layout", "internal/personal", "internal/press", "internal/render", "internal/review", "internal/schema", "internal/show", "internal/text", "internal/workspace", "signals"}},
	// What the live screens read from, and what carries out what a person wants there.
	"internal/tui/host": {own: []string{"daemon", "engine", "internal/atomicfile", "internal/console", "internal/decide", "internal/fault", "internal/show", "internal/text", "internal/tui", "internal/workspace", "specs/graph"}},
	// The page. Only what makes a daemon of its parts knows it.
	"web": {own: []string{"agents/launch", "agents/program", "daemon", "engine", "internal/approval/passkey", "internal/atomicfile", "internal/console", "internal/fault", "internal/findings", "internal/form", "internal/git", "internal/health", "internal/ids", "internal/press", "internal/land", "internal/layout", "internal/render", "internal/review", "internal/settings", "internal/show", "internal/strictjson", "internal/text", "internal/workflows", "internal/workspace", "specs", "specs/graph", "web/ansi", "web/colour", "web/patch", "web/transcript", "web/visible"}, only: []string{"github.com/rs/zerolog"}},
	// What is over, removed.
	"internal/retention": {own: []string{"agents", "daemon", "engine", "internal/atomicfile", "internal/console", "internal/fault", "internal/ids", "internal/layout", "internal/text", "internal/workspace", "journal"}},
	// The workflows of a repo, with all that a run of them reads.
	"internal/workflows": {own: []string{"agents", "engine", "gates", "internal/atomicfile", "internal/console", "internal/fault", "internal/ids", "internal/layout", "internal/prompt", "internal/settings", "internal/shells", "internal/strictjson", "internal/stub", "internal/text", "internal/workspace", "specs"}},
	// The live screens, of all repos and of one run. Their library belongs to one place.
	"internal/tui": {own: []string{"internal/fault", "internal/health", "internal/text", "internal/console", "daemon", "engine", "internal/form", "internal/press", "internal/render"}, only: []string{"charm.land/bubbletea/v2", "github.com/charmbracelet/x/ansi"}},
	// Foreign text as HTML: the one function that escapes.
	"web/visible": {own: []string{"internal/text"}},
	// A diff as HTML, read as a stream.
	"web/patch": {own: []string{"internal/review", "web/visible"}},
	// The colours of source files. Their library belongs to one place.
	"web/colour": {own: []string{"web/visible"}, only: []string{"github.com/alecthomas/chroma/v2"}},
	// What a program printed for a terminal, as HTML.
	"web/ansi": {own: []string{"internal/text", "web/visible"}},
	// What a launch printed, in pieces.
	"web/transcript": {own: []string{"agents", "agents/program", "internal/atomicfile", "internal/text", "web/ansi"}},
	// What runs checks and reviews.
	"gates/judge": {own: []string{"agents", "agents/launch", "agents/program", "agents/sandbox", "engine", "gates", "gates/checkouts", "internal/atomicfile", "internal/collect", "internal/folders", "internal/git", "internal/health", "internal/job", "internal/layout", "internal/prompt", "internal/stub", "internal/text", "internal/tree"}},
	// What agents are asked about.
	"internal/collect": {own: []string{"agents/launch", "engine", "gates", "internal/atomicfile", "internal/fault", "internal/folders", "internal/git", "internal/job", "internal/layout", "internal/prompt", "internal/settings", "internal/tasks", "internal/tree"}},
	// What attempts are owed.
	"internal/work": {own: []string{"agents/launch", "engine", "gates", "gates/judge", "internal/atomicfile", "internal/collect", "internal/fault", "internal/folders", "internal/git", "internal/health", "internal/ids", "internal/job", "internal/layout", "internal/prompt", "internal/stub", "internal/tasks", "internal/text", "internal/tree", "signals", "watcher/inbox"}},
	// The world is where the rooms are tied: it carries out what the loop owes.
	"internal/world": {own: []string{"agents", "agents/launch", "agents/sandbox", "daemon", "engine", "gates", "gates/judge", "internal/collect", "internal/folders", "internal/git", "internal/health", "internal/job", "internal/layout", "internal/pulls", "internal/settings", "internal/tree", "internal/work", "notify", "notify/people", "watcher", "watcher/inbox", "watcher/refs", "watcher/triggers"}},
}

// toolFolders hold what is run while developing and is not part of the product.
var toolFolders = []string{"tools/", "deploy/dist"}

type file struct {
	path, pkg string
	src       []byte
	ast       *ast.File
	test      bool
}

// theFiles are parsed once for all tests, which only read them.
var theFiles struct {
	once sync.Once
	set  *token.FileSet
	all  []file
}

func files(t *testing.T) (*token.FileSet, []file) {
	t.Helper()
	theFiles.once.Do(func() {
		theFiles.set = token.NewFileSet()
		each(t, ".go", func(rel string, src []byte) {
			f, err := parser.ParseFile(theFiles.set, filepath.Join("../..", rel), src, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			theFiles.all = append(theFiles.all, file{rel, path.Dir(rel), src, f, strings.HasSuffix(rel, "_test.go")})
		})
	})
	if theFiles.all == nil {
		t.Fatal("the files were not parsed: an earlier test says why")
	}
	return theFiles.set, theFiles.all
}

// each calls look for the repo's files of a kind, but for those in testdata, in hidden folders, and in those that the
// go command ignores (_NAME: what is vendored).
func each(t *testing.T, ext string, look func(rel string, text []byte)) {
	t.Helper()
	err := filepath.WalkDir("../..", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), "_") || strings.HasPrefix(d.Name(), ".") && p != "../..") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(p, ext) {
			return nil
		}
		text, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel("../..", p)
		if err != nil {
			return err
		}
		look(filepath.ToSlash(rel), text)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func tool(pkg string) bool {
	return slices.ContainsFunc(toolFolders, func(p string) bool { return strings.HasPrefix(pkg+"/", p) || strings.HasPrefix(pkg, p) })
}

func TestLayers(t *testing.T) {
	conform.Rule(t, "3-engine layers", "what each package may import")
	_, all := files(t)
	used := map[string]bool{}
	for _, f := range all {
		for _, folder := range toolFolders {
			if strings.HasPrefix(f.pkg+"/", folder) || strings.HasPrefix(f.pkg, folder) {
				used[folder] = true
			}
		}
		if f.test || tool(f.pkg) || strings.HasPrefix(f.pkg, "cmd/") {
			continue
		}
		rule, ok := layers[f.pkg]
		if !ok {
			t.Errorf("%s: package %s has no place in the layers: decide where it belongs (tools/tidy)", f.path, f.pkg)
			continue
		}
		for _, imp := range f.ast.Imports {
			path := strings.Trim(imp.Path.Value, `"`)
			if own, ours := strings.CutPrefix(path, "sluice/"); ours {
				if !slices.Contains(rule.own, own) {
					t.Errorf("%s imports %s: the layers do not allow it", f.path, path)
				}
				used[f.pkg+" "+own] = true
				continue
			}
			at := slices.IndexFunc(rule.only, func(p string) bool { return strings.HasPrefix(path, p) })
			if first, _, _ := strings.Cut(path, "/"); strings.Contains(first, ".") && at < 0 {
				t.Errorf("%s imports %s: that library belongs elsewhere", f.path, path)
			} else if at >= 0 {
				used[f.pkg+" "+rule.only[at]] = true
			}
		}
		used[f.pkg] = true
	}
	for pkg, rule := range layers {
		if !used[pkg] {
			t.Errorf("layers: there is no package %s, or it is a tool: remove its row", pkg)
			continue
		}
		for _, may := range slices.Concat(rule.own, rule.only) {
			if !used[pkg+" "+may] {
				t.Errorf("layers: %s does not import %s: remove it from its row", pkg, may)
			}
		}
	}
	for _, folder := range toolFolders {
		if !used[folder] {
			t.Errorf("toolFolders: nothing lies in %s: remove it", folder)
		}
	}
}

// engineMayNot are the packages of the standard library that reach the world.
var engineMayNot = []string{"os", "io", "io/fs", "net", "net/http", "os/exec", "sync", "sync/atomic", "context", "log", "log/slog", "math/rand", "math/rand/v2", "runtime", "syscall", "path/filepath"}

func TestEngineIsPure(t *testing.T) {
	conform.Rule(t, "3-engine pure", "no file, clock or goroutine")
	fset, all := files(t)
	for _, f := range all {
		if f.pkg != "engine" || f.test {
			continue
		}
		for _, imp := range f.ast.Imports {
			if path := strings.Trim(imp.Path.Value, `"`); slices.Contains(engineMayNot, path) {
				t.Errorf("%s imports %s: the engine is pure", f.path, path)
			}
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				t.Errorf("%s: a goroutine in the engine", fset.Position(n.Pos()))
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains([]string{"Now", "Since", "Until", "Sleep", "After", "NewTimer", "Tick"}, n.Sel.Name) {
					t.Errorf("%s: time.%s in the engine: time comes in as `at`", fset.Position(n.Pos()), n.Sel.Name)
				}
			}
			return true
		})
	}
}

// TestProgramsAnswerForThemselves: which of the agents' programs one is, only package program asks.
func TestProgramsAnswerForThemselves(t *testing.T) {
	fset, all := files(t)
	names := map[string]bool{}
	for _, f := range all {
		if f.path == "agents/program/profile.go" {
			for _, d := range f.ast.Decls {
				if d, ok := d.(*ast.GenDecl); ok && d.Tok == token.CONST {
					for _, s := range d.Specs {
						if vs := s.(*ast.ValueSpec); len(vs.Values) == 1 {
							if _, literal := vs.Values[0].(*ast.BasicLit); literal {
								names[vs.Names[0].Name] = true
							}
						}
					}
				}
			}
		}
	}
	if len(names) < 2 {
		t.Fatalf("the names of the programs are not where they were: %v", names)
	}
	for _, f := range all {
		if f.test || f.pkg == "agents/program" {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if n, ok := n.(*ast.SelectorExpr); ok && names[n.Sel.Name] {
				if x, ok := n.X.(*ast.Ident); ok && x.Name == "program" {
					t.Errorf("%s: program.%s: let the program's profile answer (agents/program/profile.go)", fset.Position(n.Pos()), n.Sel.Name)
				}
			}
			return true
		})
	}
}

// owners are what one place does for all: it bounds it, and knows its faults.
var owners = map[string][]string{
	`"gh"`:            {"internal/forge", "internal/doctor"}, // doctor looks whether it is installed
	"yaml.NewDecoder": {"specs"},
	"yaml.Unmarshal":  {"specs"},
}

func TestOwners(t *testing.T) {
	conform.Rule(t, "12-forge owner", "gh is run, and YAML is decoded, in one place each")
	_, all := files(t)
	for what, own := range owners {
		for _, f := range all {
			if !f.test && !tool(f.pkg) && strings.Contains(string(f.src), what) && !slices.Contains(own, f.pkg) {
				t.Errorf("%s: %s belongs to %s", f.path, what, own[0])
			}
		}
	}
}

func TestPackagesAreDocumented(t *testing.T) {
	conform.Rule(t, "style 2", "every package")
	_, all := files(t)
	docs := map[string]bool{}
	for _, f := range all {
		if !f.test {
			docs[f.pkg] = docs[f.pkg] || f.ast.Doc != nil
		}
	}
	for pkg, ok := range docs {
		if !ok {
			t.Errorf("package %s has no doc", pkg)
		}
	}
}

// Lengths beyond which a reader would rather have the pieces.
const (
	functionLines = 80
	fileLines     = 620
)

func TestLengths(t *testing.T) {
	conform.Rule(t, "style 7", "functions and files")
	fset, all := files(t)
	for _, f := range all {
		if f.test {
			continue
		}
		if n := strings.Count(string(f.src), "\n"); n > fileLines {
			t.Errorf("%s has %d lines, more than %d", f.path, n, fileLines)
		}
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if n := fset.Position(fn.End()).Line - fset.Position(fn.Pos()).Line + 1; n > functionLines {
				t.Errorf("%s: %s has %d lines, more than %d", fset.Position(fn.Pos()), fn.Name.Name, n, functionLines)
			}
		}
	}
}

func TestNoGlobalsNoInit(t *testing.T) {
	conform.Rule(t, "style 4", "only errors, embedded files and what the linker sets")
	fset, all := files(t)
	for _, f := range all {
		if f.test || tool(f.pkg) {
			continue
		}
		for _, d := range f.ast.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil && d.Name.Name == "init" {
					t.Errorf("%s: init: whoever needs it calls it", fset.Position(d.Pos()))
				}
			case *ast.GenDecl:
				if d.Tok != token.VAR {
					continue
				}
				for _, s := range d.Specs {
					vs := s.(*ast.ValueSpec)
					for _, name := range vs.Names {
						if !allowedVar(d, vs, name.Name) {
							t.Errorf("%s: package-level variable %s: only errors, embedded files and what the linker sets", fset.Position(name.Pos()), name.Name)
						}
					}
				}
			}
		}
	}
}

func allowedVar(d *ast.GenDecl, vs *ast.ValueSpec, name string) bool {
	if strings.HasPrefix(name, "Err") || strings.HasPrefix(name, "err") || name == "_" || name == "version" {
		return true
	}
	for _, doc := range []*ast.CommentGroup{d.Doc, vs.Doc} {
		if doc != nil && strings.Contains(func() string {
			all := ""
			for _, c := range doc.List {
				all += c.Text
			}
			return all
		}(), "//go:embed") {
			return true
		}
	}
	return false
}

func TestNothingIsLeftForLater(t *testing.T) {
	later := regexp.MustCompile(`\b(TODO|FIXME|XXX)\b`)
	place := regexp.MustCompile(`/work/(main|shared)|\.library\b|proxy\.golang\.org`)
	_, all := files(t)
	for _, f := range all {
		if f.pkg == "tools/tidy" {
			continue
		}
		for i, line := range strings.Split(string(f.src), "\n") {
			if later.MatchString(line) || place.MatchString(line) {
				t.Errorf("%s:%d: %s", f.path, i+1, strings.TrimSpace(line))
			}
		}
	}
}
