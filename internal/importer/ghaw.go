package importer

import (
	"cmp"
	"path"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

func seemsGhaw(d document) bool {
	has := func(key string) bool { return get(d.root, key) != nil }
	return d.md && !has("tracker") && (has("safe-outputs") || has("engine") || has("on") || has("redirect"))
}

// ghawTable says what becomes of each key of a gh-aw workflow.
func ghawTable() []construct {
	const permissions = "permissions are yours to decide: nothing of them is imported"
	return slices.Concat(
		taken("name", "description", "timeout-minutes", "timeout_minutes", "steps", "imports", "env", "emoji", "tracker-id"),
		near("the role is the engine: `roles` in config.yaml says which agent and model play it", "engine"),
		left("start it with `sluice start`, from cron, or from whatever receives the event", "on", "if",
			"concurrency", "run-name",
			"skip-if-match", "stop-after"),
		left(permissions, "permissions", "network", "sandbox", "strict", "roles", "features", "secrets"),
		left("each agent's own settings have its tools and servers", "tools", "mcp-servers", "mcp-scripts", "cache",
			"runtimes"),
		near("the agent says what it would publish, and a person looks at it and publishes", "safe-outputs"),
		left("jobs beside the agent are yours to make: steps", "jobs", "services", "post-steps", "runs-on", "container",
			"checkout"),
		left("it is another file's: import that one", "redirect", "source"),
	)
}

const ghawExpr = `\$\{\{\s*([^{}]*?)\s*\}\}`

func readGhaw(r *reader, d document) {
	if to := get(d.root, "redirect"); to != nil && len(pairs(d.root)) == 1 {
		r.fail(to, "this file only names another: import %q", str(to))
		return
	}
	f := r.begin(d, d.root, "gh-aw", "")
	s := &step{id: "agent", role: "agent"}
	if e := get(d.root, "engine"); e != nil {
		if id := str(e) + str(get(e, "id")); id != "" {
			s.role = slug(id, 40)
		}
	}
	r.ghawSteps(d, f)
	s.timeout = cmp.Or(minutes(get(d.root, "timeout-minutes")), minutes(get(d.root, "timeout_minutes")))
	imports := get(d.root, "imports")
	for _, i := range items(imports) {
		if name := str(i) + str(get(i, "path")); !r.ghawImport(f, s, name) {
			r.near(imports, "%s is not in this tree", name)
			s.notes = append(s.notes, "left: import "+name+", which is not in this tree")
		}
	}
	s.prompt = ghawWords(d.body, f)
	if strings.TrimSpace(s.prompt) == "" {
		s.prompt = "This workflow has no text of its own."
	}
	odd := ""
	if strings.Contains(d.body, "{{#") {
		odd = "what stands between {{# }} is not evaluated: the agent reads it as it is"
	}
	r.body(d, s, odd)
	for _, e := range pairs(get(d.root, "env")) {
		if v := str(e.value); !strings.Contains(v, "${{") && envName(e.key.Value) {
			s.env = append(s.env, entry{e.key.Value, v})
		} else {
			r.near(get(d.root, "env"), "values that GitHub puts in are left")
		}
	}
	if out := get(d.root, "safe-outputs"); out != nil {
		r.ghawOutputs(f, s, out)
	} else {
		s.next = []string{"DONE"}
	}
	f.steps = append(f.steps, s)
	for i, before := range f.steps[:len(f.steps)-1] {
		before.next = []string{f.steps[i+1].id}
		if before.gate != nil {
			before.gate.pass = before.next
		}
	}
	r.account(d.root, "", "", &f.notes)
}

// ghawWords makes a var of each value that GitHub puts in.
func ghawWords(s string, f *flow) string {
	return fill(s, regexp.MustCompile(ghawExpr), func(m []string) (string, bool) {
		first, _, _ := strings.Cut(m[1], "||")
		first = strings.TrimSpace(first)
		if !regexp.MustCompile(`^[A-Za-z_][\w.-]*$`).MatchString(first) {
			return "", false
		}
		name := varName(strings.ReplaceAll(strings.TrimPrefix(strings.TrimPrefix(first, "github."), "event."), ".", "_"))
		return embed(f.addVar(variable{name: name, value: quoted(""), description: "what GitHub has as " + first})), true
	})
}

// ghawSteps makes steps of the commands that run before the agent.
func (r *reader) ghawSteps(d document, f *flow) {
	names := namer{}
	names.id("agent")
	n := get(d.root, "steps")
	for i, c := range items(n) {
		title, run := str(get(c, "name")), str(get(c, "run"))
		id := names.id(strings.ToLower(title))
		if run == "" {
			r.near(n, "an action (step %d, %s) is left: a `run` of a step is what ours has", i+1, str(get(c, "uses")))
			continue
		}
		s := &step{id: id, name: title}
		command, got := r.shellFile(f, id, run, func(t string) (string, int) {
			m := regexp.MustCompile(`^` + ghawExpr).FindString(t)
			return "GITHUB_VALUE", len(m)
		})
		if got.why != "" || len(got.reads) > 0 {
			if got.why == "" {
				got.why, got.line = "GitHub puts values into it", 1
			}
			r.near(n, "the script of step %d is not run (%s): a person is asked instead", i+1, got.held())
			f.byHand(s, "gh-aw runs a script here that sluice does not ("+got.held()+"). Do by hand what it does.")
		} else {
			s.shell = command
		}
		f.steps = append(f.steps, s)
	}
}

// ghawImport writes a shared file, if it is there, as a prompt file that the agent reads first.
func (r *reader) ghawImport(f *flow, s *step, name string) (found bool) {
	words, err := r.src.text(path.Join(path.Dir(r.src.file), name))
	if err != nil {
		return false
	}
	if _, body, line := frontMatter(words); line > 0 {
		words = body
	}
	s.context = append(s.context, r.prompt(f, strings.TrimSuffix(path.Base(name), ".md"), words))
	return true
}

// ghawOutputs has the agent say what it would publish, and a person look at it.
func (r *reader) ghawOutputs(f *flow, s *step, out *yaml.Node) {
	var kinds []string
	for _, p := range pairs(out) {
		kinds = append(kinds, p.key.Value)
	}
	list := mapOf("type", quoted("array"))
	item := objectSchema(field{"kind", describe(kindSchema("string"), "one of "+strings.Join(kinds, ", "))},
		field{"content", textSchema("the whole text, with title and target where it has them")})
	add(list, "items", item)
	s.answer = objectSchema(field{"publish", list}, field{"summary", textSchema("what was done")})
	s.prompt = strings.TrimRight(s.prompt, "\n") +
		"\n\nYou publish nothing yourself. What this text asks you to publish, put into `publish` of your answer, " +
		"each with its kind: " + strings.Join(kinds, ", ") + "."
	f.judge(s, &gate{id: "publish", level: "human", pass: []string{"DONE"}, onFail: s.id,
		prompt: "What the agent would publish is in its answer. Publish what is right, and pass."})
}
