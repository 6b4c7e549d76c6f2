package main

import (
	"context"
	"encoding/json"

	"heartbeat/config"
)

type schemaCmd struct{}

// Help implements kong's HelpProvider.
func (schemaCmd) Help() string {
	return `Prints the JSON Schema (draft 2020-12) of heartbeat.yaml, for editors and other
programs. "heartbeat validate" finds more: a schema cannot check directories, cron
expressions or prompts.

Examples:

    heartbeat schema > heartbeat.schema.json
    # then, as the first line of heartbeat.yaml:
    # yaml-language-server: $schema=heartbeat.schema.json`
}

// schemaDoc is the schema; with JSON output it is the data.
type schemaDoc json.RawMessage

func (schemaCmd) run(context.Context, *app) (result, error) {
	return schemaDoc(config.Schema()), nil
}

// MarshalJSON gives the document itself.
func (d schemaDoc) MarshalJSON() ([]byte, error) { return d, nil }

func (d schemaDoc) text(p *page) { p.document(d) }
