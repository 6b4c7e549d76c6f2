package rooms

import (
	"go/ast"
	"go/parser"
	"go/token"
)

// What becomes of a change of the store that cannot be made.
const (
	answered = "whoever asked for it is told that it was not done"
	owed     = "the store owes it: (*store.Store).Owe"
	again    = "what is not written stays with the caller, who tries again by itself"
)

// writers lists the functions that write the store, with what becomes of what they cannot write.
// That it is logged is not enough: what has come to be true would be kept with its next change
// only, which may never come.
var writers = map[string]string{
	"cmd/heartbeat/approval.go answerStopped":      answered,
	"cmd/heartbeat/send.go awaits":                 answered,
	"cmd/heartbeat/web.go note":                    owed,
	"orchestrator/accounts.go keepAccounts":        owed,
	"orchestrator/adopt/adopt.go Act":              answered,
	"orchestrator/adopt/adopt.go takeOnce":         answered,
	"orchestrator/adopt/usage.go billsOf":          answered,
	"orchestrator/check/check.go write":            again,
	"orchestrator/consent/consent.go change":       again, // the next look finds it not done
	"orchestrator/exports/behind.go Compare":       answered,
	"orchestrator/exports/exports.go New":          answered,
	"orchestrator/exports/exports.go keep":         again,
	"orchestrator/holds.go follow":                 owed,
	"orchestrator/intake/intake.go commit":         again, // the lines stay where the next taking finds them
	"orchestrator/journal/journal.go Flush":        again,
	"orchestrator/launch/conversation.go Forget":   owed,
	"orchestrator/launch/conversation.go converse": answered,
	"orchestrator/memory/book.go Save":             owed,
	"orchestrator/notify/letters.go refresh":       again,
	"orchestrator/notify/memo/book.go Save":        again,
	"orchestrator/notify/notify.go forget":         owed,
	"orchestrator/notify/undelivered.go log":       owed,
	"orchestrator/page/access/tokens.go Host":      answered,
	"orchestrator/page/access/tokens.go change":    answered,
	"orchestrator/page/once/once.go Do":            owed,
	"orchestrator/page/once/once.go begin":         answered,
	"orchestrator/pause.go toEach":                 answered,
	"orchestrator/ready.go keepIdentities":         answered,
	"orchestrator/series/recorder.go look":         again,
	"orchestrator/session/leftover.go Bill":        again,
	"orchestrator/sessions_end.go learn":           owed,
	"orchestrator/store/prune.go Remove":           again,
	"orchestrator/store/watch.go Watch":            again,
	"orchestrator/store/watch.go look":             again,
	"orchestrator/store/write.go Close":            answered,
	"orchestrator/store/write.go Open":             answered,
	"orchestrator/takeover/move.go move":           again, // the next start finds the files, and which they are
	"orchestrator/takeover/takeover.go adopt":      answered,
	"orchestrator/takeover/takeover.go takeLater":  answered,
}

// Writing returns the functions of a source file that write the store, by their names.
func Writing(name string, source []byte) (functions []string, err error) {
	file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, d := range file.Decls {
		f, is := d.(*ast.FuncDecl)
		if !is || f.Body == nil {
			continue
		}
		writes := false
		ast.Inspect(f.Body, func(n ast.Node) bool {
			call, is := n.(*ast.CallExpr)
			if !is || len(call.Args) != 2 { // (*store.Store).Write alone has two
				return true
			}
			method, is := call.Fun.(*ast.SelectorExpr)
			if !is || method.Sel.Name != "Write" {
				return true
			}
			if of, is := method.X.(*ast.Ident); !is || of.Name != "journal" { // which is given a change
				writes = true
			}
			return true
		})
		if writes {
			functions = append(functions, f.Name.Name)
		}
	}
	return functions, nil
}
