package sources

import (
	"fmt"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"
)

// text/template fails where a field is below null or is not there. So a template that
// works on JSON gets functions of ours in place of its fields: {{.JSON.a.b}} becomes
// {{_shown $ . "JSON" "a" "b"}}. They have names that nobody writes.
const (
	fieldFunction  = "_field"  // (root, value, names…): a field that is asked about
	shownFunction  = "_shown"  // the same, for one that stands in the prompt
	headerFunction = "_header" // (root, name)
	eachFunction   = "_each"   // (value): what range goes through
)

// mostRounds bounds how often a range repeats for a number.
const mostRounds = 1 << 20

// fielder is the data of a prompt that has JSON in it.
type fielder interface {
	field(name string) (value any, ok bool)
	header(name string) (value string, ok bool)
	noteLack(what string)
}

// lacks are what a prompt names and its data does not have.
type lacks struct{ names *[]string }

func (l lacks) noteLack(what string) {
	if l.names != nil && !slices.Contains(*l.names, what) {
		*l.names = append(*l.names, what)
	}
}

// String returns the output: what {{.}} is.
func (d PollData) String() string { return d.Output }

// String returns the body: what {{.}} is.
func (d WebhookData) String() string { return d.Body }

func (d PollData) field(name string) (any, bool) {
	switch name {
	case "Output":
		return d.Output, true
	case "JSON":
		return d.JSON, true
	}
	return nil, false
}

func (PollData) header(string) (string, bool) { return "", false }

func (d WebhookData) field(name string) (any, bool) {
	switch name {
	case "Body":
		return d.Body, true
	case "JSON":
		return d.JSON, true
	}
	return nil, false
}

func (d WebhookData) header(name string) (string, bool) { return d.headers(name) }

func find(value any, names []any) (any, bool) {
	found := true
	for _, name := range names {
		ok := false
		if data, is := value.(fielder); is {
			value, ok = data.field(textOf(name))
		} else {
			value, ok = below(value, name)
		}
		found = found && ok
	}
	return seen(value), found
}

func fieldOf(_, value any, names ...any) any {
	found, _ := find(value, names)
	return found
}

func shown(root, value any, names ...any) any {
	found, ok := find(value, names)
	if data, is := root.(fielder); is && !ok {
		path := make([]string, len(names))
		for i, name := range names {
			path[i] = "." + textOf(name)
		}
		data.noteLack(strings.Join(path, ""))
	}
	return found
}

func header(root, name any) string {
	data, is := root.(fielder)
	if !is {
		return ""
	}
	value, ok := data.header(textOf(name))
	if !ok {
		data.noteLack("the header " + textOf(name))
	}
	return value
}

// each returns what range goes through: the elements of a list or an object, and any
// other value of JSON as the only one. The length of something is a number of rounds.
func each(value any) (any, error) {
	switch v := value.(type) {
	case nil:
		return List{}, nil
	case List:
		return List(allSeen(v)), nil
	case Object:
		all := Object{}
		for name, element := range v {
			all[name] = seen(element)
		}
		return all, nil
	case int:
		if v > mostRounds {
			return nil, fmt.Errorf("%d is too often", v)
		}
		rounds := make(List, max(v, 0))
		for i := range rounds {
			rounds[i] = i
		}
		return rounds, nil
	}
	if value == "" {
		return List{}, nil
	}
	return List{value}, nil
}

// makeLenient puts our functions in place of the fields of a template and of those that
// it defines.
func makeLenient(t *template.Template) {
	for _, one := range t.Templates() {
		if one.Tree != nil {
			lenientList(one.Root)
		}
	}
}

func lenientList(l *parse.ListNode) {
	if l == nil {
		return
	}
	for _, n := range l.Nodes {
		switch n := n.(type) {
		case *parse.ActionNode:
			lenientPipe(n.Pipe)
			if args := n.Pipe.Cmds[0].Args; len(n.Pipe.Decl) == 0 && len(n.Pipe.Cmds) == 1 && len(args) == 1 {
				if call, ok := args[0].(*parse.PipeNode); ok && isCall(call, fieldFunction) {
					call.Cmds[0].Args[0] = parse.NewIdentifier(shownFunction)
				}
			}
		case *parse.TemplateNode:
			lenientPipe(n.Pipe)
		case *parse.IfNode:
			lenientBranch(&n.BranchNode)
		case *parse.WithNode:
			lenientBranch(&n.BranchNode)
		case *parse.RangeNode:
			lenientBranch(&n.BranchNode)
			n.Pipe.Cmds = append(n.Pipe.Cmds, &parse.CommandNode{NodeType: parse.NodeCommand, Pos: n.Pos, Args: []parse.Node{parse.NewIdentifier(eachFunction)}})
		}
	}
}

func isCall(p *parse.PipeNode, function string) bool {
	name, ok := p.Cmds[0].Args[0].(*parse.IdentifierNode)
	return ok && len(p.Cmds) == 1 && name.Ident == function
}

func lenientBranch(b *parse.BranchNode) {
	lenientPipe(b.Pipe)
	lenientList(b.List)
	lenientList(b.ElseList)
}

func lenientPipe(p *parse.PipeNode) {
	if p == nil {
		return
	}
	for i, c := range p.Cmds {
		if receiver := headerOf(c.Args[0]); receiver != nil && (i > 0 || len(c.Args) > 1) {
			c.Args = append([]parse.Node{parse.NewIdentifier(headerFunction), receiver}, c.Args[1:]...)
		}
		for j, arg := range c.Args {
			c.Args[j] = lenientNode(arg)
		}
	}
}

// headerOf returns what a node takes .Header of, or nil.
func headerOf(n parse.Node) parse.Node {
	switch n := n.(type) {
	case *parse.FieldNode:
		if slices.Equal(n.Ident, []string{"Header"}) {
			return &parse.DotNode{NodeType: parse.NodeDot, Pos: n.Pos}
		}
	case *parse.VariableNode:
		if slices.Equal(n.Ident, []string{"$", "Header"}) {
			return variable(n.Pos, "$")
		}
	}
	return nil
}

func variable(at parse.Pos, name string) parse.Node {
	return &parse.VariableNode{NodeType: parse.NodeVariable, Pos: at, Ident: []string{name}}
}

func word(at parse.Pos, text string) parse.Node {
	return &parse.StringNode{NodeType: parse.NodeString, Pos: at, Quoted: fmt.Sprintf("%q", text), Text: text}
}

// lenientNode returns what takes the place of a node.
func lenientNode(n parse.Node) parse.Node {
	switch n := n.(type) {
	case *parse.PipeNode:
		lenientPipe(n)
	case *parse.NilNode:
		return word(n.Pos, "")
	case *parse.FieldNode:
		return fieldCall(n.Pos, &parse.DotNode{NodeType: parse.NodeDot, Pos: n.Pos}, n.Ident)
	case *parse.VariableNode:
		if len(n.Ident) > 1 {
			return fieldCall(n.Pos, variable(n.Pos, n.Ident[0]), n.Ident[1:])
		}
	case *parse.ChainNode:
		return fieldCall(n.Pos, lenientNode(n.Node), n.Field)
	}
	return n
}

func fieldCall(at parse.Pos, receiver parse.Node, names []string) parse.Node {
	args := []parse.Node{parse.NewIdentifier(fieldFunction), variable(at, "$"), receiver}
	for _, name := range names {
		args = append(args, word(at, name))
	}
	command := &parse.CommandNode{NodeType: parse.NodeCommand, Pos: at, Args: args}
	return &parse.PipeNode{NodeType: parse.NodePipe, Pos: at, Cmds: []*parse.CommandNode{command}}
}
