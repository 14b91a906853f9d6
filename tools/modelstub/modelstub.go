// Package modelstub is a loopback server that speaks enough of the Anthropic Messages API and of the OpenAI Responses API
// for the real claude and codex to come to the end of real runs, and of the APIs that opencode, qwen and gemini use. It is for tests: what the model "says" is a play that the
// test wrote.
//
// A prompt names its part by the words STUB:NAME; the last such word of a conversation counts. Which act of the part is
// played goes by the number of tool results after that word, so a conversation that is repeated gets the same answer.
package modelstub

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"time"
)

// Act is one answer of the model.
type Act struct {
	Text       string
	Bash       string            // a command that it has its shell run
	Write      [2]string         // a file that it writes, and its content
	Structured map[string]any    // the answer to a schema, by claude's own tool
	Tool       string            // a tool that it uses, by its full name
	Input      map[string]any    // what that is given
	Play       func(Turn) Act    // says which act this is, by what was said and done before
	Error      int               // an HTTP status instead of an answer
	Header     map[string]string // of the error
	Code       string            // of the error, as OpenAI names it
	Message    string            // of the error
	Resets     time.Time         // when the usage limit of the error ends, as OpenAI tells it
	Hang       bool              // no answer at all
	Silent     bool              // headers, and then nothing
}

// Turn is where a conversation stands.
type Turn struct {
	Step   int    // tool results after the part's name
	Result string // the text of the last one
	Text   string // all the words of people
}

// Part are the acts of each conversation that has its name, in the order the conversations begin; the last is repeated.
type Part [][]Act

// Stub is a running server.
type Stub struct {
	URL string

	server *httptest.Server
	closed chan struct{}
	mu     sync.Mutex
	parts  map[string]Part
	began  map[string]int // conversations of each part
	seen   []Request
}

// Request is one that was made for an answer.
type Request struct {
	Part   string
	Step   int // tool results after the part's name
	Model  string
	Text   string // all the words of people in it
	Tools  []string
	Bytes  int    // of the whole request
	Schema string // that the answer shall fit, as the API of OpenAI has it
}

// New starts a server; Close ends it.
func New(parts map[string]Part) *Stub {
	s := &Stub{parts: parts, began: map[string]int{}, closed: make(chan struct{})}
	s.server = httptest.NewServer(s)
	s.URL = s.server.URL
	return s
}

// Close ends the server and all that hangs.
func (s *Stub) Close() {
	close(s.closed)
	s.server.CloseClientConnections()
	s.server.Close()
}

// Seen returns the requests so far.
func (s *Stub) Seen() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request{}, s.seen...)
}

// maxBody bounds a request.
const maxBody = 64 << 20

func (s *Stub) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	raw, err := io.ReadAll(io.LimitReader(req.Body, maxBody))
	if err != nil {
		return
	}
	var b body
	b.size = len(raw)
	_ = json.Unmarshal(raw, &b) // a request that is none is answered as one of the part ""
	switch {
	case req.Method == http.MethodHead:
	case strings.HasSuffix(req.URL.Path, "/count_tokens"):
		fmt.Fprint(w, `{"input_tokens":1000}`)
	case strings.HasSuffix(req.URL.Path, "/messages"):
		s.play(w, req, b, b.Messages, anthropic{})
	case strings.HasSuffix(req.URL.Path, "/responses"):
		s.play(w, req, b, b.Input, openai{})
	case strings.HasSuffix(req.URL.Path, "/chat/completions"):
		s.play(w, req, b, b.Messages, chat{})
	case strings.HasSuffix(req.URL.Path, ":streamGenerateContent"), strings.HasSuffix(req.URL.Path, ":generateContent"):
		s.play(w, req, b, geminiTalk(raw), gemini{stream: strings.HasSuffix(req.URL.Path, ":streamGenerateContent")})
	default:
		http.Error(w, `{"type":"error","error":{"type":"not_found_error","message":"no such route"}}`, http.StatusNotFound)
	}
}

// body is what is read of a request.
type body struct {
	Model    string          `json:"model"`
	Stream   bool            `json:"stream"`
	Messages json.RawMessage `json:"messages"`
	Input    json.RawMessage `json:"input"`
	Format   struct {
		Format struct {
			Schema json.RawMessage `json:"schema"`
		} `json:"format"`
	} `json:"text"`
	Tools []struct {
		Name string `json:"name"`
		Type string `json:"type"`

		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	} `json:"tools"`

	size int
}

// item is a part of a conversation, of either API.
type item struct {
	Type    string          `json:"type"`
	Role    string          `json:"role"`
	Text    string          `json:"text"`
	Content json.RawMessage `json:"content"`
	Output  json.RawMessage `json:"output"`
}

// result is the text of a tool's result, of either API.
func result(raw json.RawMessage) string {
	var s string
	var items []item
	if json.Unmarshal(raw, &s) == nil || json.Unmarshal(raw, &items) != nil {
		return s
	}
	for _, i := range items {
		s += i.Text
	}
	return s
}

// words walks a conversation and gives what people said, which part was named last, and the tool results since.
func words(conversation json.RawMessage) (turn Turn, part string) {
	var all strings.Builder
	var walk func(raw json.RawMessage)
	say := func(s string) {
		all.WriteString(s + "\n")
		if m := regexp.MustCompile(`STUB:([A-Za-z0-9_.-]+)`).FindAllStringSubmatch(s, -1); len(m) > 0 {
			part, turn.Step, turn.Result = m[len(m)-1][1], 0, ""
		}
	}
	walk = func(raw json.RawMessage) {
		var s string
		var items []item
		switch {
		case json.Unmarshal(raw, &s) == nil:
			say(s)
		case json.Unmarshal(raw, &items) == nil:
			for _, i := range items {
				switch {
				case strings.HasSuffix(i.Type, "_call_output"):
					turn.Step, turn.Result = turn.Step+1, result(i.Output)
				case i.Type == "tool_result", i.Role == "tool":
					turn.Step, turn.Result = turn.Step+1, result(i.Content)
				case i.Role == "user":
					walk(i.Content)
				case i.Role == "" && i.Text != "":
					say(i.Text)
				}
			}
		}
	}
	walk(conversation)
	turn.Text = all.String()
	return turn, part
}

// api is one of the two.
type api interface {
	fail(w http.ResponseWriter, a Act)
	answer(w http.ResponseWriter, a Act, b body, id string)
}

func (s *Stub) play(w http.ResponseWriter, req *http.Request, b body, conversation json.RawMessage, as api) {
	turn, part := words(conversation)
	s.mu.Lock()
	r := Request{Part: part, Step: turn.Step, Model: b.Model, Text: turn.Text, Bytes: b.size, Schema: string(b.Format.Format.Schema)}
	for _, t := range b.Tools {
		r.Tools = append(r.Tools, t.Name+t.Type)
	}
	s.seen = append(s.seen, r)
	id := fmt.Sprintf("stub%06d", len(s.seen))
	if turn.Step == 0 {
		s.began[part]++
	}
	act := Act{Text: "ok"}
	if p := s.parts[part]; len(p) > 0 {
		acts := p[min(max(s.began[part]-1, 0), len(p)-1)]
		act = acts[min(turn.Step, len(acts)-1)]
	}
	s.mu.Unlock()
	if act.Play != nil {
		act = act.Play(turn)
	}
	switch {
	case act.Hang || act.Silent:
		if act.Silent {
			w.Header().Set("Content-Type", "text/event-stream")
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
		}
		select {
		case <-s.closed:
		case <-req.Context().Done():
		}
	case act.Error != 0:
		w.Header().Set("Content-Type", "application/json")
		for k, v := range act.Header {
			w.Header().Set(k, v)
		}
		as.fail(w, act)
	default:
		as.answer(w, act, b, id)
	}
}

// events writes server-sent events.
func events(w http.ResponseWriter) func(name string, data any) {
	w.Header().Set("Content-Type", "text/event-stream")
	return func(name string, data any) {
		text, err := json.Marshal(data)
		if err != nil {
			panic(err) // only maps of plain values are given
		}
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", name, text)
		w.(http.Flusher).Flush()
	}
}

type m = map[string]any

type anthropic struct{}

func (anthropic) fail(w http.ResponseWriter, a Act) {
	kind := map[int]string{401: "authentication_error", 429: "rate_limit_error", 529: "overloaded_error", 400: "invalid_request_error", 404: "not_found_error"}[a.Error]
	if kind == "" {
		kind = "api_error"
	}
	w.WriteHeader(a.Error)
	_ = json.NewEncoder(w).Encode(m{"type": "error", "error": m{"type": kind, "message": "stub: " + kind + " " + a.Message}})
}

func (anthropic) answer(w http.ResponseWriter, a Act, b body, id string) {
	var content []m
	if a.Text != "" {
		content = append(content, m{"type": "text", "text": a.Text})
	}
	stop := "end_turn"
	use := func(tool string, input any) {
		content = append(content, m{"type": "tool_use", "id": "toolu_" + id, "name": tool, "input": input})
		stop = "tool_use"
	}
	switch {
	case a.Write[0] != "":
		use("Write", m{"file_path": a.Write[0], "content": a.Write[1]})
	case a.Bash != "":
		use("Bash", m{"command": a.Bash, "description": "stub"})
	case a.Structured != nil:
		use("StructuredOutput", a.Structured)
	case a.Tool != "":
		use(a.Tool, a.Input)
	}
	usage := m{"input_tokens": 1000, "output_tokens": 50, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
	message := m{"id": "msg_" + id, "type": "message", "role": "assistant", "model": b.Model, "stop_sequence": nil, "usage": usage}
	if !b.Stream {
		message["content"], message["stop_reason"] = content, stop
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(message)
		return
	}
	message["content"], message["stop_reason"] = []m{}, nil
	say := events(w)
	say("message_start", m{"type": "message_start", "message": message})
	for i, c := range content {
		if c["type"] == "text" {
			say("content_block_start", m{"type": "content_block_start", "index": i, "content_block": m{"type": "text", "text": ""}})
			say("content_block_delta", m{"type": "content_block_delta", "index": i, "delta": m{"type": "text_delta", "text": c["text"]}})
		} else {
			input, err := json.Marshal(c["input"])
			if err != nil {
				panic(err) // of the test's own act
			}
			say("content_block_start", m{"type": "content_block_start", "index": i, "content_block": m{"type": "tool_use", "id": c["id"], "name": c["name"], "input": m{}}})
			say("content_block_delta", m{"type": "content_block_delta", "index": i, "delta": m{"type": "input_json_delta", "partial_json": string(input)}})
		}
		say("content_block_stop", m{"type": "content_block_stop", "index": i})
	}
	say("message_delta", m{"type": "message_delta", "delta": m{"stop_reason": stop, "stop_sequence": nil}, "usage": m{"output_tokens": 50}})
	say("message_stop", m{"type": "message_stop"})
}

type openai struct{}

func (openai) fail(w http.ResponseWriter, a Act) {
	code := a.Code
	if code == "" {
		code = map[int]string{401: "invalid_api_key", 429: "rate_limit_exceeded"}[a.Error]
	}
	w.WriteHeader(a.Error)
	e := m{"message": "stub: " + code + " " + a.Message, "type": code, "code": code, "param": nil}
	if !a.Resets.IsZero() {
		e["resets_at"], e["plan_type"] = a.Resets.Unix(), "pro"
	}
	_ = json.NewEncoder(w).Encode(m{"error": e})
}

func (openai) answer(w http.ResponseWriter, a Act, b body, id string) {
	var out []m
	if a.Text != "" {
		out = append(out, m{"type": "message", "id": "msg_" + id, "role": "assistant", "status": "completed",
			"content": []m{{"type": "output_text", "text": a.Text, "annotations": []m{}}}})
	}
	call := func(name string, input any) {
		arguments, err := json.Marshal(input)
		if err != nil {
			panic(err) // of the test's own act
		}
		item := m{"type": "function_call", "id": "fc_" + id, "call_id": "call_" + id, "status": "completed", "name": name, "arguments": string(arguments)}
		for _, t := range b.Tools { // the tools of an MCP server stand in a name space
			if short, ok := strings.CutPrefix(name, t.Name+"__"); ok && t.Type == "namespace" {
				item["namespace"], item["name"] = t.Name, short
			}
		}
		out = append(out, item)
	}
	if a.Tool != "" {
		call(a.Tool, a.Input)
	}
	command := a.Bash
	if a.Write[0] != "" {
		command = fmt.Sprintf("mkdir -p \"$(dirname %[1]q)\" && cat > %[1]q <<'STUB_END'\n%[2]s\nSTUB_END", a.Write[0], a.Write[1])
	}
	if command != "" {
		// The tool that this release of codex offers for it.
		name, input := "exec_command", m{"cmd": command}
		for _, t := range b.Tools {
			if t.Name == "shell_command" {
				name, input = t.Name, m{"command": command}
			}
		}
		call(name, input)
	}
	say, n := events(w), 0
	event := func(kind string, data m) {
		data["type"], data["sequence_number"] = kind, n
		n++
		say(kind, data)
	}
	response := m{"id": "resp_" + id, "object": "response", "created_at": time.Now().Unix(), "model": b.Model, "status": "in_progress", "output": []m{}}
	event("response.created", m{"response": response})
	for i, o := range out {
		event("response.output_item.added", m{"output_index": i, "item": o})
		if o["type"] == "message" {
			event("response.output_text.delta", m{"item_id": o["id"], "output_index": i, "content_index": 0, "delta": a.Text})
		}
		event("response.output_item.done", m{"output_index": i, "item": o})
	}
	response["status"], response["output"] = "completed", out
	response["usage"] = m{"input_tokens": 1000, "input_tokens_details": m{"cached_tokens": 0}, "output_tokens": 50, "output_tokens_details": m{"reasoning_tokens": 0}, "total_tokens": 1050}
	event("response.completed", m{"response": response})
}
