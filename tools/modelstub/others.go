package modelstub

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// chat is OpenAI's older API, which most programs speak beside their own.
type chat struct{}

func (chat) fail(w http.ResponseWriter, a Act) { openai{}.fail(w, a) }

func (chat) answer(w http.ResponseWriter, a Act, b body, id string) {
	message, stop := m{"role": "assistant", "content": a.Text}, "stop"
	if a.Bash != "" {
		name := "run_shell_command"
		for _, t := range b.Tools {
			if t.Function.Name == "bash" {
				name = "bash"
			}
		}
		message["tool_calls"] = []m{{"index": 0, "id": "call_" + id, "type": "function", "function": m{"name": name, "arguments": shellInput(a)}}}
		stop = "tool_calls"
	}
	whole := m{"id": id, "object": "chat.completion", "created": 1, "model": b.Model, "usage": m{"prompt_tokens": 1000, "completion_tokens": 50, "total_tokens": 1050}}
	if !b.Stream {
		whole["choices"] = []m{{"index": 0, "message": message, "finish_reason": stop}}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(whole)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	whole["object"] = "chat.completion.chunk"
	usage := whole["usage"]
	delete(whole, "usage")
	whole["choices"] = []m{{"index": 0, "delta": message, "finish_reason": nil}}
	data(w, whole)
	whole["choices"], whole["usage"] = []m{{"index": 0, "delta": m{}, "finish_reason": stop}}, usage
	data(w, whole)
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// shellInput are the arguments of a tool that runs a command.
func shellInput(a Act) string {
	text, err := json.Marshal(m{"command": a.Bash, "description": "stub", "is_background": false})
	if err != nil {
		panic(err) // two texts
	}
	return string(text)
}

// data writes a server-sent event without a name.
func data(w http.ResponseWriter, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // only maps of plain values are given
	}
	fmt.Fprintf(w, "data: %s\n\n", text)
	w.(http.Flusher).Flush()
}

// gemini is Google's API.
type gemini struct{ stream bool }

func (gemini) fail(w http.ResponseWriter, a Act) {
	status := map[int]string{401: "UNAUTHENTICATED", 429: "RESOURCE_EXHAUSTED", 400: "INVALID_ARGUMENT"}[a.Error]
	if status == "" {
		status = "INTERNAL"
	}
	w.WriteHeader(a.Error)
	_ = json.NewEncoder(w).Encode(m{"error": m{"code": a.Error, "message": "stub: " + status + " " + a.Message, "status": status}})
}

func (g gemini) answer(w http.ResponseWriter, a Act, _ body, _ string) {
	var parts []m
	if a.Text != "" {
		parts = append(parts, m{"text": a.Text})
	}
	if a.Bash != "" {
		parts = append(parts, m{"functionCall": m{"name": "run_shell_command", "args": m{"command": a.Bash, "description": "stub"}}})
	}
	out := m{"candidates": []m{{"content": m{"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}},
		"usageMetadata": m{"promptTokenCount": 1000, "candidatesTokenCount": 50, "totalTokenCount": 1050}}
	if g.stream {
		w.Header().Set("Content-Type", "text/event-stream")
		data(w, out)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(out)
}

// geminiTalk is a conversation of Google's API in the form of the others.
func geminiTalk(raw []byte) json.RawMessage {
	var in struct {
		Contents []struct {
			Role  string `json:"role"`
			Parts []struct {
				Text     string          `json:"text"`
				Function json.RawMessage `json:"functionResponse"`
			} `json:"parts"`
		} `json:"contents"`
	}
	_ = json.Unmarshal(raw, &in) // what is none has no words
	items := []m{}
	for _, c := range in.Contents {
		for _, p := range c.Parts {
			switch {
			case p.Function != nil:
				items = append(items, m{"type": "tool_result"})
			case !strings.EqualFold(c.Role, "model"):
				items = append(items, m{"role": "user", "content": p.Text})
			}
		}
	}
	out, err := json.Marshal(items)
	if err != nil {
		panic(err) // only maps of texts
	}
	return out
}
