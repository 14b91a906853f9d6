// Package tree takes the work of an attempt as one git commit. Checks and reviewers judge that
// commit, a person sees it, an answer is bound to it, and the branch gets it.
//
// # Promises
//
// A taken commit is kept at sluice's own ref (refs/sluice/taken/<run>/<step>.<n>), where no agent
// can write. Its tree is the folder after the last process ended. If git would skip something or
// cannot store it, taking fails with a reason; nothing is silently omitted. The folder, its index
// and its branch do not change.
//
// An Advance moves a branch to a taken commit. A person's staged and unstaged changes stay. After a
// kill at any moment, the next call completes what was half done.
//
// # Values
//
// An Order is what a launch starts from, a Taken its result. Both are plain values: they name
// commits and can be understood without a folder of this machine.
package tree

// Order is what an attempt starts from.
type Order struct {
	Run  string `json:"run"`
	Step string `json:"step"`
	N    int    `json:"n"`
	// Base is the commit that the work is built on; "" before the repo's first commit.
	Base string `json:"base,omitempty"`
	// Found is the commit of the folder's files before the attempt: Base itself if nothing
	// differed.
	Found string `json:"found,omitempty"`
	// Joined are commits merged into the folder before the attempt.
	Joined []string `json:"joined,omitempty"`
	// Branch is the full name of the folder's branch; "" if HEAD is detached.
	Branch string `json:"branch,omitempty"`
}

// Taken is the result of an attempt.
type Taken struct {
	// Commit has the folder's tree and the history of the agent's last commit.
	Commit string `json:"commit"`
	// Tip is the agent's last commit, or Base if it made none.
	Tip string `json:"tip,omitempty"`
	// Law are deciding files in no tree that changed since before the run.
	Law []Beside `json:"law,omitempty"`
	// Beside are files that are judged and bound to answers but do not ship: ignored outputs,
	// ignored files that `protect` names.
	Beside []Beside `json:"beside,omitempty"`
	// Hidden are files in no tree because ignore rules changed since the run began. More counts
	// those not listed.
	Hidden []Beside `json:"hidden,omitempty"`
	More   int      `json:"more,omitempty"`
	// Outside are all deciding files in no tree, changed or not.
	Outside []Beside `json:"-"`
}

// Beside is a file that is not in the tree.
type Beside struct {
	Path   string `json:"path"`
	Digest string `json:"digest"` // SHA-256, hex; "" if it is missing
}
