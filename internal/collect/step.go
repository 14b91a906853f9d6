package collect

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"sluice/agents/launch"
	"sluice/engine"
	"sluice/gates"
	"sluice/internal/atomicfile"
	"sluice/internal/fault"
	"sluice/internal/job"
	"sluice/internal/layout"
	"sluice/internal/prompt"
	"sluice/internal/tasks"
	"sluice/internal/tree"
)

const (
	maxShownFile = 64 << 10 // bytes read of a shown file; the prompt has its own limit
)

// ContextFiles returns what to read first, as seen from the folder, without missing files.
func (co *Collector) ContextFiles(spec *engine.Spec, st *engine.Step, dir string) []string {
	all := slices.Clone(spec.ContextFiles)
	if st.Agent != nil {
		all = append(all, st.Agent.Context...)
	}
	found, missing, err := gates.Expand(co.Root, dir, all)
	if err != nil || len(missing) > 0 {
		co.folders.Logf("step %s: context files that cannot be read are left out: %s %v", st.ID,
			strings.Join(missing, ", "), err)
	}
	return found
}

// RetryFiles returns the run's retry-context files about the step, oldest first.
func (co *Collector) RetryFiles(j job.Job, step string, dir string) []prompt.TextFile {
	var out []prompt.TextFile
	for _, h := range j.History {
		if j.Spec.Concerns(step, h.Step, h.To) {
			out = append(out, co.TextFile(co.Root, co.RetryPath(j.Run, h.Path), dir))
		}
	}
	return out
}

// SentOf returns the rounds with a route that concern a prompt, oldest first.
func SentOf(j job.Job, concern func(job.Sent) bool) []prompt.Sent {
	var out []prompt.Sent
	for _, q := range j.Sent {
		g := j.Spec.Gate(q.Gate)
		if g == nil || !concern(q) {
			continue
		}
		x := prompt.Sent{Gate: q.Gate, Route: q.Route, Times: q.Times, To: q.To, Reviewer: JudgedBy(g, &q.Round), At: q.Ended,
			Score: q.Score, Scores: q.Scores, Feedback: q.Feedback, Findings: q.Findings}
		if q.ByKind == engine.Human {
			x.Said, x.SaidBy = q.Said, SaidBy(g, nil)
		}
		out = append(out, x)
	}
	return out
}

// A prompt names at most MaxTriedFiles retry-context files of a task's earlier tries. Of one try,
// at most maxTriedSeen files are looked at: agents can write there too.
const (
	MaxTriedFiles = 50
	maxTriedSeen  = 2000
)

// TriedFiles returns the newest retry-context files of earlier tries at the run's task, oldest
// first, and then those of the gates that sent its list back, as seen from the folder. At its first
// try a task has none: it was not in what these gates refused, or has their words as its text.
func (co *Collector) TriedFiles(j job.Job, dir string) []string {
	c := j.RunInfo.Child
	if c == nil || c.Task == "" {
		return nil
	}
	dot := strings.LastIndexByte(j.Run, '.')
	n, err := strconv.Atoi(j.Run[dot+1:])
	if err != nil {
		return nil
	}
	var out []string
	for k := n - 1; k > 0 && len(out) < MaxTriedFiles; k-- {
		run := j.Run[:dot+1] + strconv.Itoa(k)
		var of []string
		// Those of an ended run were moved.
		for _, rel := range []string{co.RunDir(run) + "/retry-context", engine.InRetryDir(".workflow/retry-context/", run)} {
			of = append(of, co.filesIn(rel, dir)...)
		}
		out = append(of, out...)
	}
	if n > 1 {
		for _, h := range j.RunInfo.SentBack {
			out = append(out, layout.SeenFrom(dir, co.Path(co.RetryPath(c.Parent, h.Path))))
		}
	}
	return out[max(0, len(out)-MaxTriedFiles):]
}

// filesIn returns the files of a folder of the repo, as seen from dir: the newest MaxTriedFiles,
// oldest first, without names that contain control characters.
func (co *Collector) filesIn(rel, dir string) (out []string) {
	path := co.Path(rel)
	f, err := atomicfile.OpenDir(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	infos, _ := f.Readdir(maxTriedSeen) // a part is enough
	slices.SortFunc(infos, func(a, b fs.FileInfo) int {
		return cmp.Or(a.ModTime().Compare(b.ModTime()), strings.Compare(a.Name(), b.Name()))
	})
	for _, info := range infos {
		if info.Mode().IsRegular() && !strings.ContainsFunc(info.Name(), unicode.IsControl) {
			out = append(out, layout.SeenFrom(dir, filepath.Join(path, info.Name())))
		}
	}
	return out[max(0, len(out)-MaxTriedFiles):]
}

// TextFile reads a file of the repo for a prompt, with its path as seen from dir.
func (co *Collector) TextFile(base, p, dir string) prompt.TextFile {
	f := prompt.TextFile{Path: layout.SeenFrom(dir, filepath.Join(base, filepath.FromSlash(p)))}
	if !filepath.IsLocal(filepath.FromSlash(p)) {
		f.Why = "it leads out of the repo"
		return f
	}
	file, st, err := atomicfile.Open(base, filepath.FromSlash(p))
	if err != nil {
		f.Why = "it cannot be read as a file: " + fault.WithoutPath(err).Error()
		return f
	}
	defer file.Close()
	data := make([]byte, min(st.Size, maxShownFile))
	n, _ := file.ReadAt(data, 0) // a part is enough
	if slices.Contains(data[:n], 0) {
		f.Why = "it is binary"
		return f
	}
	f.Text = string(data[:n])
	if st.Size > maxShownFile {
		f.Text += "\n[there is more of it in the file]"
	}
	return f
}

// SignalTold returns the signal file for the launch to write: its own inbox's path if that cannot
// appear in place of the shared one.
func (co *Collector) SignalTold(j job.Job, st *engine.Step) string {
	file := co.SignalFile(j.Run, st)
	if box, _ := co.launches.Box(); file != "" && box != nil && !box.Remaps() && !j.Offers(st) {
		return filepath.Join(co.PIDFile(j.Key)+layout.InboxMark, j.Run, filepath.Base(file))
	}
	return file
}

// Given returns the list's task that a run is for, for its reviewers.
func Given(j job.Job) (n prompt.Note) {
	if c := j.RunInfo.Child; c != nil && c.Task != "" {
		n = prompt.Note{From: fmt.Sprintf("The task: %s, as it is in the task file", c.Task), Text: tasks.Shown(c.Body)}
	}
	return n
}

// StepPrompt returns the prompt of a step's agent.
func (co *Collector) StepPrompt(ctx context.Context, j job.Job, st *engine.Step, b tree.Begin, w launch.Who,
	answer string) (string, error) {
	template, err := co.Template(w, false)
	if err != nil {
		return "", err
	}
	values := prompt.NewValues()
	task, err := values.Text(st.Agent.Prompt, j.Env)
	if err != nil {
		return "", job.Refused("prompt: %v", err)
	}
	made, _, err := job.Outputs(st.Outputs, j.Env)
	if err != nil {
		return "", err
	}
	found, err := co.folders.Needed(ctx, j, st, b)
	if err != nil {
		return "", err
	}
	box, _ := co.launches.Box()
	in := prompt.StepInput{
		OwnGit: (box != nil || w.Afar) && b.Top != "" && co.opt.Git.Checkout() && !j.Offers(st) && b.Look == "",
		Looks:  b.Look, Conflicts: b.Conflicts, Role: w.Role, Template: template, Workflow: j.RunInfo.Workflow,
		Description: j.Spec.Description, Run: j.Run, Step: st.ID, Name: st.Name, Attempt: j.Attempt.N, Task: task,
		Values: values, ContextFiles: co.ContextFiles(j.Spec, st, b.Dir), Outputs: made, Criteria: st.Criteria,
		Unjudged: prompt.Unjudged(j.Spec, st) != "", Retry: co.RetryFiles(j, st.ID, b.Dir),
		Sent:   SentOf(j, func(q job.Sent) bool { return j.Spec.Concerns(st.ID, q.Step, q.To) }),
		Schema: st.Answer, Answer: answer,
		Signal: prompt.SignalInput{Signal: st.Signal, Path: co.SignalTold(j, st), Branch: b.Branch, Offered: j.Offers(st)},
	}
	for _, f := range found {
		in.Inputs = append(in.Inputs, prompt.Input{Path: f, There: true})
	}
	note := func(when bool, from, text string) {
		if when {
			in.Notes = append(in.Notes, prompt.Note{From: from, Text: text})
		}
	}
	if c := j.RunInfo.Child; c != nil {
		note(c.Task != "", fmt.Sprintf("Your task: %s, as it is in the task file", c.Task), tasks.Shown(c.Body))
	}
	note(b.Aside != "", "Work that did not pass",
		fmt.Sprintf("It is not in your folder. `git show --stat %[1]s` and `git diff HEAD %[1]s` show it.", b.Aside))
	note(j.RunInfo.FileWhy != "", "What is wrong with the task file", j.RunInfo.FileWhy)
	note(len(j.RunInfo.Tried) > 0, "How the earlier tries at this task went", strings.Join(j.RunInfo.Tried, "\n\n"))
	files := co.TriedFiles(j, b.Dir)
	note(len(files) > 0, "What was found wrong in the earlier tries, in files, oldest first", strings.Join(files, "\n"))
	note(len(j.Earlier) > 0, "How this step's earlier attempts went", strings.Join(j.Earlier, "\n"))
	for _, n := range j.Notes {
		in.Words = append(in.Words,
			prompt.Note{From: fmt.Sprintf("%s, %s", n.By.Who, n.At.Local().Format(time.DateTime)), Text: n.Text})
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if w.Afar && in.Signal.Path != "" { // it works in another folder: relative to that
		in.Signal.Path = path.Join(layout.SignalsDir, j.Run, filepath.Base(in.Signal.Path))
	}
	return prompt.Step(in), nil
}
