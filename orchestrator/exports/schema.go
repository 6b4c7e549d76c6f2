package exports

import _ "embed"

// Schema makes the tables of this room. It becomes a step of the store with the commit that links
// the room into the product.
//
//go:embed schema.sql
var Schema string
