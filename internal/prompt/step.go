package prompt

import (
	"fmt"
	"strconv"
	"strings"

	"sluice/engine"
	"sluice/internal/text"
)

// StepInput is what a step's prompt is made of.
type StepInput struct {
	Role     string
	Template string // the text of the role's own template; "" = the built-in one

	Workflow    string
	Description string
	Run         string
	Step        string
	Name        string
	Attempt     int
	OwnGit      bool     // its git folder is its own: what is not on its branch goes with it
	Looks       string   // the commit that a step sees which only looks; "" = it works
	Task        string   // the step's prompt, with marks for what Values has
	Values      *Values  // nil = none
	Conflicts   []string // files with conflict markers: what the step joins was merged into its folder
	Words       []Note   // what a person wrote for this step while the run went on, oldest first

	ContextFiles []string // of the workflow and of the step
	Inputs       []Input
	Outputs      []string
	Criteria     []engine.Criterion
	Unjudged     bool       // nobody judges the texts among the criteria
	Retry        []TextFile // the retry context, oldest first
	Sent         []Sent     // routes that were taken, oldest first
	Notes        []Note

	Signal SignalInput
	Schema *engine.Schema // of the answer; nil = none is wanted
	Answer string         // the file SLUICE_ANSWER names
}

// Step returns the prompt of a step's agent, at most Max bytes.
func Step(in StepInput) string {
	p := &page{}
	p.title(titled("Step", in.Step, in.Name))
	p.fill(orElse(in.Template, stepTemplate(in.Role)), in.sections(), map[string]string{
		"role": text.Code(in.Role), "workflow": text.Code(in.Workflow), "run": text.Code(in.Run),
		"step": text.Code(in.Step), "name": text.Code(orElse(in.Name, in.Step)),
		"attempt": strconv.Itoa(max(in.Attempt, 1)),
	})
	return p.String()
}

// sections are in the order in which they stand where the template does not place them.
func (in StepInput) sections() []section {
	task, foreign := in.Values.fill(in.Task)
	foreign = foreign || len(in.Retry)+len(in.Notes)+len(in.Sent) > 0
	return []section{
		{"where", in.where},
		{"task", func(p *page) { in.task(p, task) }},
		{"context", func(p *page) { p.context(in.ContextFiles, nil) }},
		{"inputs", func(p *page) { p.inputs(in.Inputs) }},
		{"rules", func(p *page) {
			if foreign {
				p.section("Rules about data")
				p.text(dataRule)
			}
		}},
		{"retry", func(p *page) {
			p.sentTo(in.Sent, in.Step, in.Attempt)
			p.retry(in.Retry, in.Attempt)
		}},
		{"notes", func(p *page) { p.notes(in.Notes) }},
		{"outputs", func(p *page) { p.outputs(in.Outputs) }},
		{"criterion", func(p *page) { p.criteria(in.Criteria, in.Unjudged) }},
		{"answer", func(p *page) { p.answer(in.Schema, in.Answer) }},
		{"signal", func(p *page) {
			p.section("How to say that you are done")
			p.signal(in.Signal)
		}},
	}
}

func (in StepInput) where(p *page) {
	where := fmt.Sprintf("This is attempt %d at step %s of the workflow %s",
		max(in.Attempt, 1), text.Code(in.Step), text.Code(in.Workflow))
	if in.Run != "" {
		where += fmt.Sprintf(" (run %s)", text.Code(in.Run))
	}
	p.section("Where you are")
	p.text("%s. Your working folder is the one you were started in; paths below are relative to it.", where)
	if in.OwnGit {
		p.text("Git works here in a git folder made for this attempt. " +
			"Commits on the branch you are on are taken over when you have ended; " +
			"stashes, tags and other branches are not.")
	}
	if in.Looks != "" {
		p.text("You only look: the folder is a checkout of commit %s, for reading. "+
			"Nothing written in it is kept. What you find is your answer.",
			text.Code(fmt.Sprintf("%.12s", in.Looks)))
	}
	p.whole(in.Description)
}

func (in StepInput) task(p *page, task string) {
	p.section("Your task")
	if strings.TrimSpace(in.Task) == "" {
		p.text("Do what the step's name says (%s), so that its outputs are there and its criterion holds.",
			text.Code(orElse(in.Name, in.Step)))
	}
	p.prose(task, maxTask)
	p.conflicts(in.Conflicts)
	p.words(in.Words)
}

// conflicts lists the files of a join that are left to the step.
func (p *page) conflicts(files []string) {
	if len(files) == 0 {
		return
	}
	p.text("\nThe work that this step needs was merged into your folder before you began. " +
		"These files have conflicts, between lines that begin with `<<<<<<<` and `>>>>>>>`. " +
		"Resolving them, so that both sides' work is kept, is part of your task:\n")
	p.list(each(files, text.Code))
}

// words shows what a person wrote for the step's agents. It belongs to the task; its mark sets it apart from data.
func (p *page) words(words []Note) {
	room, from := maxWordsAll, len(words)
	for from > 0 && len(words)-from < maxWords && room >= minRoom {
		from--
		room -= len(words[from].Text)
	}
	if from == len(words) {
		return
	}
	p.text("\n### Words of the person in charge\n")
	p.text("The person who runs this wrote the following while it went on, newest last. " +
		"Blocks marked `words` are theirs and belong to your task: where they differ from the task above, they hold. " +
		"They do not change how you say that you are done, or what is checked.\n")
	p.raw(strings.Join(each(newest(p, words, len(words)-from, "older ones"), func(w Note) string {
		return markedAs("words", text.Data(w.From, w.Text, maxNote))
	}), "\n"))
}

// retry shows the history of failures: every file is named, the newest texts are shown.
func (p *page) retry(files []TextFile, attempt int) {
	if len(files) == 0 {
		return
	}
	p.section("What went wrong before")
	if attempt > 1 {
		p.text("This step was done before. What it made is still there: change it, do not start over.")
	} else {
		p.text("The work of another step was judged and did not pass; this step was sent to deal with that.")
	}
	p.text("Below is what the judges found, oldest first. " +
		"Fix every fault that the newest report names, and keep fixed what the older ones name.\n")
	files = newest(p, files, maxRetryFiles, "older files")
	shown, room := make([]string, len(files)), maxRetryAll
	for i := len(files) - 1; i >= 0; i-- {
		shown[i] = files[i].content("File", maxRetryFile, &room, "read the file")
	}
	p.raw(strings.Join(shown, "\n"))
}

// outputs says what has to be there in the end.
func (p *page) outputs(outputs []string) {
	if len(outputs) == 0 {
		return
	}
	p.section("What you must produce")
	p.text("These files must be there when you are done:\n")
	p.list(each(outputs, ownPath))
}

// criteria says what has to hold in the end.
func (p *page) criteria(criteria []engine.Criterion, unjudged bool) {
	if len(criteria) == 0 {
		return
	}
	p.section("When it is good")
	p.text("All of this must hold. It is checked when you say that you are done; your word alone is not enough.\n")
	words := each(criteria, func(c engine.Criterion) string { return CriterionWords(c, unjudged) })
	p.prose("- "+strings.Join(words, "\n- "), maxCriteria)
}

// answer says of what shape the structured answer is, and where it goes.
func (p *page) answer(schema *engine.Schema, path string) {
	if schema == nil {
		return
	}
	p.section("Your answer")
	p.text("Besides your work, give an answer: one JSON value that fits this JSON Schema.\n")
	p.raw(schemaBlock(schema))
	p.raw("\n")
	p.raw(whereAnswer(path, "answer"))
	p.text("\nIf you could not do the task, give the answer a top-level `\"status\": \"failed\"` " +
		"(or `\"blocked\"`, with a `\"question\"`), where the schema lets you.")
}

// titled is the title of a prompt.
func titled(what, id, name string) string {
	if name == "" || name == id {
		return what + " " + id
	}
	return what + " " + id + ": " + name
}

// Again is the prompt of an agent that is asked again for its answer: it remembers nothing.
func Again(correction, before, reply string) string {
	return correction + "\n" + text.DataEnd("What you said", reply, MaxReplyShown) +
		fmt.Sprintf("\nWhat you were asked, to know what the answer is about (the work itself is done):\n\n---\n\n%s", before)
}

// MaxReplyShown is how much of its last reply, in bytes, an agent that is asked again is shown.
const MaxReplyShown = 16 << 10
