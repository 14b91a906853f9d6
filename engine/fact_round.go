package engine

import (
	"encoding/json"
	"time"
)

// The facts of a gate's rounds.
type (
	// RoundOpened: round n of the gate is about the step's current attempt.
	RoundOpened struct {
		of
		Gate       string   `json:"gate"`
		N          int      `json:"n"`
		Step       string   `json:"step"`
		Attempt    int      `json:"attempt"`
		Level      string   `json:"level"`
		VetoWindow Duration `json:"veto_window,omitempty"`
		Trust      string   `json:"trust,omitempty"`
		Digest     string   `json:"digest,omitempty"`
	}
	// ReviewStarted: launch k of the round's reviewer holds the worktree; Tree is "" if it sees the
	// taken work instead.
	ReviewStarted struct {
		of
		Gate     string    `json:"gate"`
		N        int       `json:"n"`
		K        int       `json:"k"`
		Key      string    `json:"key"`
		Tree     string    `json:"tree"`
		Deadline time.Time `json:"deadline,omitzero"`
		Role     string    `json:"role,omitempty"`  // of the launched agent; "" = a command
		Forge    bool      `json:"forge,omitempty"` // the forge judges: nothing runs here
	}
	// Judged: the reviewer's verdict was accepted and the outcome computed.
	Judged struct {
		of
		Gate     string             `json:"gate"`
		N        int                `json:"n"`
		Outcome  string             `json:"outcome"`
		Word     string             `json:"word,omitempty"` // the reviewer's own, if `verdict:` computes the outcome
		Score    *float64           `json:"score,omitempty"`
		Scores   map[string]float64 `json:"scores,omitempty"`
		Feedback string             `json:"feedback,omitempty"`
		Findings json.RawMessage    `json:"findings,omitempty"`
		Answer   json.RawMessage    `json:"answer,omitempty"`
		ByKind   string             `json:"by_kind,omitempty"` // step: its own report; command; forge; "" = a reviewing agent
		Read     string             `json:"read,omitempty"`    // where the verdict was found, in words
	}
	// Inconclusive: a review ended without a verdict; it never passes and never counts.
	Inconclusive struct {
		of
		Gate      string    `json:"gate"`
		N         int       `json:"n"`
		Why       string    `json:"why"`
		NotBefore time.Time `json:"not_before,omitzero"`
		Limit     bool      `json:"limit,omitempty"`
		Budget    string    `json:"budget,omitempty"` // see StepRelaunched
	}
	// Agreed: the reviewer passed at level notify; the notice is owed before the window opens.
	Agreed struct {
		of
		Gate string `json:"gate"`
		N    int    `json:"n"`
	}
	// WindowOpened: a veto counts until then.
	WindowOpened struct {
		of
		Gate  string    `json:"gate"`
		N     int       `json:"n"`
		Until time.Time `json:"until"`
	}
	// HumanAsked: from now on only a person's answer to this round counts.
	HumanAsked struct {
		of
		Gate     string    `json:"gate"`
		N        int       `json:"n"`
		Why      string    `json:"why"`
		Forced   bool      `json:"forced,omitempty"`  // the gate needs a person for the rest of the run
		Protect  bool      `json:"protect,omitempty"` // asked because the step changed protected files
		Due      time.Time `json:"due,omitzero"`
		RemindAt time.Time `json:"remind_at,omitzero"`
	}
	// Reminded: a reminder to the person was owed.
	Reminded struct {
		of
		Gate   string    `json:"gate"`
		N      int       `json:"n"`
		NextAt time.Time `json:"next_at,omitzero"`
		Due    time.Time `json:"due,omitzero"`
	}
	// GateFailed: a round's failure was counted.
	GateFailed struct {
		of
		Gate     string `json:"gate"`
		N        int    `json:"n"`
		Count    int    `json:"count"`
		Outcome  string `json:"outcome"`
		Feedback string `json:"feedback,omitempty"`
		ByKind   string `json:"by_kind,omitempty"` // human, if a person decided
		// digest of the normalised feedback, if repeated failures are watched
		Failure string `json:"failure,omitempty"`
		Same    int    `json:"same,omitempty"`
		Digest  string `json:"digest,omitempty"`
	}
	// RouteCounted: a round goes back by a named route, which has its own count at the gate. It is
	// no failure.
	RouteCounted struct {
		of
		Gate     string `json:"gate"`
		N        int    `json:"n"`
		Route    string `json:"route"`
		Count    int    `json:"count"`
		Feedback string `json:"feedback,omitempty"`
		ByKind   string `json:"by_kind,omitempty"` // human, if a person decided
	}
	// SignatureUsed: a signed answer was accepted; it counts once.
	SignatureUsed struct {
		of
		Gate    string    `json:"gate"`
		N       int       `json:"n"`
		Outcome string    `json:"outcome"`
		By      Actor     `json:"by"`
		Nonce   string    `json:"nonce"`
		Expires time.Time `json:"expires"`
		// the text with its signature, for verification with the list of keys
		Proof string `json:"proof,omitempty"`
	}
	// RoundPassed: the gate passed the work.
	RoundPassed struct {
		of
		Gate   string `json:"gate"`
		N      int    `json:"n"`
		ByKind string `json:"by_kind"` // reviewer, window, human, exhausted, when
		By     *Actor `json:"by,omitempty"`
		Text   string `json:"text,omitempty"` // why it is not judged

		Feedback   string `json:"feedback,omitempty"`    // a person's words
		LetThrough int    `json:"let_through,omitempty"` // by on_exhausted, after this many failures
		Route      string `json:"route,omitempty"`       // or after this route was taken so often

		Answer json.RawMessage `json:"answer,omitempty"` // a person's, valid by the gate's schema
	}
	// RoundFailed: the gate did not pass the work.
	RoundFailed struct {
		of
		Gate     string          `json:"gate"`
		N        int             `json:"n"`
		Outcome  string          `json:"outcome"`
		ByKind   string          `json:"by_kind"` // reviewer, criterion, human, timeout
		By       *Actor          `json:"by,omitempty"`
		Feedback string          `json:"feedback,omitempty"`
		To       string          `json:"to"`
		Findings json.RawMessage `json:"findings,omitempty"` // a person's comments
		// a person failed it with max_retries reached: the gate needs a person for the rest of the run
		Forced bool `json:"forced,omitempty"`
		Veto   bool `json:"veto,omitempty"` // the person's word was a veto

		// the work goes on nevertheless; this was the gate's failure of this number
		LetThrough int `json:"let_through,omitempty"`
		Times      int `json:"times,omitempty"` // of a RoundRouted that leads back: its count
	}
	// RoundRouted: the gate sent the work along a named route, Outcome. It is no failure, though
	// older releases recorded a RoundFailed. LetThrough is one more than the gate's failures so
	// far.
	RoundRouted RoundFailed
	// RoundVoided: the reviewed content has changed; the attempt is checked and judged again.
	RoundVoided struct {
		of
		Gate string `json:"gate"`
		N    int    `json:"n"`
		Why  string `json:"why"`
		By   *Actor `json:"by,omitempty"`
	}
	// ExhaustedTo: the gate's retries are used up, and on_exhausted sends the work to a step, once.
	ExhaustedTo struct {
		of
		Gate  string `json:"gate"`
		To    string `json:"to"`
		Renew bool   `json:"renew,omitempty"` // reset the counts when To has passed; older releases did at once
	}
	// CountRenewed: the step of on_exhausted has passed, and the gate's counts restart. The step
	// stays used.
	CountRenewed struct {
		of
		Gate string `json:"gate"`
	}
	// CountReset: the gate's counts are 0 again, and the step of on_exhausted may be used again.
	CountReset struct {
		of
		Gate string `json:"gate"`
	}
)
