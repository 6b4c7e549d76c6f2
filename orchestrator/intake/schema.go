package intake

import _ "embed" // for Schema

// Schema makes the table. It becomes a step of the store with the commit that makes the store
// the queue.
//
//go:embed schema.sql
var Schema string
