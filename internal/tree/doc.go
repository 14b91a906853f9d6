// Package tree takes the work of an attempt as one git commit. That commit is what checks and reviewers judge, what a
// person is shown, what an answer is bound to, and what the branch has afterwards.
//
// # What is promised
//
// A taken commit is kept at a ref of sluice's own (refs/sluice/taken/<run>/<step>.<n>), where no agent can write.
// Its tree is the folder as it was after the last process had gone. What git alone would skip or cannot hold makes the
// taking fail with a reason; nothing is left out in silence. The folder, its index and its branch are not changed.
//
// An Advance moves a branch to a taken commit. A person's staged and unstaged changes stay as they are, and a kill at any
// moment leaves nothing half done that the next call does not complete.
//
// # Values
//
// An Order is what a launch starts from, a Taken what came of it. Both are plain values: they name commits, and
// need no folder of this machine to be understood.
package tree

// Order is what an attempt starts from.
type Order struct {
	Run  string `json:"run"`
	Step string `json:"step"`
	N    int    `json:"n"`
	// Base is the commit that the work is built on; "" before the repo's first commit.
	Base string `json:"base,omitempty"`
	// Found is the commit whose tree is the folder as it was before the attempt: Base itself where nothing differed.
	Found string `json:"found,omitempty"`
	// Joined are commits that were merged into the folder before the attempt.
	Joined []string `json:"joined,omitempty"`
	// Branch is the full name of the branch of the folder; "" where HEAD is detached.
	Branch string `json:"branch,omitempty"`
}

// Taken is what an attempt left.
type Taken struct {
	// Commit has the folder's tree. Its history is that of the agent's own last commit.
	Commit string `json:"commit"`
	// Tip is the agent's own last commit, Base where it made none.
	Tip string `json:"tip,omitempty"`
	// Law are files that decide, are in no tree and differ from how they were before the run.
	Law []Beside `json:"law,omitempty"`
	// Beside are files that are judged and bound, and do not ship: ignored outputs, ignored files that `protect` names.
	Beside []Beside `json:"beside,omitempty"`
	// Hidden are files that are in no tree because of ignore rules that changed since the run began. More counts those
	// beyond what is listed.
	Hidden []Beside `json:"hidden,omitempty"`
	More   int      `json:"more,omitempty"`
	// Outside are all files that decide and are in no tree, changed or not.
	Outside []Beside `json:"-"`
}

// Beside is a file that is no part of the tree.
type Beside struct {
	Path   string `json:"path"`
	Digest string `json:"digest"` // SHA-256, hex; "" where it is missing
}
