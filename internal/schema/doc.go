// Package schema is the one compiler of the JSON Schemas that answers are held against. A spec that
// loads and an answer that is read go by the same rules, so that what was loaded is never refused
// later, when an agent would be asked again for the spec's fault.
package schema
