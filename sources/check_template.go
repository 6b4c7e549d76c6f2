package sources

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"text/template"
	"text/template/parse"
)

// TemplateError lists everything that is wrong with a prompt's template.
type TemplateError struct {
	Faults []Fault // at least one
}

// Error lists the faults.
func (e *TemplateError) Error() string {
	texts := make([]string, len(e.Faults))
	for i, f := range e.Faults {
		texts[i] = f.Message
	}
	return "cannot read prompt template: " + strings.Join(texts, "; ")
}

// faultsOf finds what is wrong with a template on paths that a trial run may not take:
// fields that sample lacks, values that are called, functions with too few values. With
// onJSON, nothing else can fail when the prompt is made. Fields are checked only
// outside of define, range and with, where the dot means something else.
func faultsOf(t *template.Template, sample any, onJSON bool) []Fault {
	data := reflect.TypeOf(sample)
	if t.Tree == nil || data == nil || data.Kind() != reflect.Struct {
		return nil
	}
	s := templateSearch{data: data, onJSON: onJSON, known: t.Lookup}
	s.list(t.Root, dotIsData)
	for _, one := range t.Templates() {
		if one.Tree != nil && one.Root != t.Root {
			s.list(one.Root, dotIsAny)
		}
	}
	return s.faults
}

// dot says what the dot is at a place of a template.
type dot int

const (
	dotIsData  dot = iota // the prompt's data
	dotIsAny              // what a define is given
	dotIsOther            // an element or a value
)

type templateSearch struct {
	data   reflect.Type
	onJSON bool
	known  func(name string) *template.Template
	faults []Fault
}

func (s *templateSearch) fault(n parse.Node, message, hint string) {
	s.faults = append(s.faults, Fault{Offset: int(n.Position()), Message: message, Hint: hint})
}

func (s *templateSearch) list(l *parse.ListNode, at dot) {
	if l == nil {
		return
	}
	for _, n := range l.Nodes {
		s.node(n, at)
	}
}

// node checks a node and everything below it.
func (s *templateSearch) node(n parse.Node, at dot) {
	switch n := n.(type) {
	case *parse.ActionNode:
		s.pipe(n.Pipe, at)
	case *parse.TemplateNode:
		if s.known(n.Name) == nil {
			s.fault(n, fmt.Sprintf("there is no template %q", n.Name), "")
		}
		s.pipe(n.Pipe, at)
	case *parse.IfNode:
		s.branch(&n.BranchNode, at, at)
	case *parse.WithNode:
		s.branch(&n.BranchNode, at, dotIsOther)
	case *parse.RangeNode:
		s.branch(&n.BranchNode, at, dotIsOther)
	case *parse.PipeNode:
		s.pipe(n, at)
	case *parse.ChainNode:
		s.node(n.Node, at)
	case *parse.NumberNode:
		if n.IsUint && !n.IsInt {
			s.fault(n, n.Text+" is too large", "")
		}
	case *parse.FieldNode:
		if at == dotIsData {
			s.field(n, n.Ident)
		}
	case *parse.VariableNode: // $ is the prompt's data everywhere but in define
		if n.Ident[0] == "$" && len(n.Ident) > 1 && at != dotIsAny {
			s.field(n, n.Ident[1:])
		}
	}
}

func (s *templateSearch) branch(b *parse.BranchNode, at, inside dot) {
	s.pipe(b.Pipe, at)
	s.list(b.List, inside)
	s.list(b.ElseList, at)
}

func (s *templateSearch) pipe(p *parse.PipeNode, at dot) {
	if p == nil {
		return
	}
	for i, c := range p.Cmds {
		given := len(c.Args) - 1
		if i > 0 {
			given++
		}
		switch first := c.Args[0].(type) {
		case *parse.IdentifierNode:
			s.function(c, first, given)
		case *parse.NilNode:
			s.fault(first, "nil is nothing to show", "")
		default:
			if s.onJSON && given > 0 {
				s.called(first, at)
			}
		}
		for j, arg := range c.Args {
			if s.onJSON && headerOf(arg) != nil && (j > 0 || given == 0) && at == dotIsData {
				s.fault(arg, "{{.Header}} needs a name", `write (.Header "NAME")`)
			}
			s.node(arg, at)
		}
	}
}

// called reports values that are given arguments, as only functions can be.
func (s *templateSearch) called(n parse.Node, at dot) {
	switch _, onRoot := n.(*parse.VariableNode); {
	case headerOf(n) == nil:
		s.fault(n, fmt.Sprintf("%s is not a function", n), "")
	case !onRoot && at == dotIsOther:
		s.fault(n, "there is no {{.Header}} inside of range and with", `write $.Header "NAME"`)
	}
}

// function checks how a function of text/template is used.
func (s *templateSearch) function(c *parse.CommandNode, name *parse.IdentifierNode, given int) {
	wants, limited := arities[name.Ident]
	switch {
	case name.Ident == "call":
		s.fault(name, "there is no function to call", "")
	case limited && given < wants[0]:
		s.fault(name, fmt.Sprintf("%s has %d values and needs %d", name.Ident, given, wants[0]), "")
	case limited && wants[1] >= 0 && given > wants[1]:
		s.fault(name, fmt.Sprintf("%s has %d values and takes %d", name.Ident, given, wants[1]), "")
	case name.Ident == "printf" && len(c.Args) > 1:
		format, ok := c.Args[1].(*parse.StringNode)
		if !ok {
			break
		}
		if why := formatFault(format.Text, given-1); why != "" {
			s.fault(name, why, "")
		}
	}
}

// field checks a path of fields of the prompt's data. Only JSON has fields of its own.
func (s *templateSearch) field(n parse.Node, path []string) {
	name := path[0]
	found, isField := s.data.FieldByName(name)
	_, isMethod := s.data.MethodByName(name)
	isHeader := s.data == reflect.TypeFor[WebhookData]() && name == "Header"
	switch {
	case isHeader && len(path) > 1:
		s.fault(n, "{{.Header}} needs a name", `write (.Header "NAME")`)
	case isHeader:
	case !isField && !isMethod || isField && !found.IsExported():
		s.fault(n, "there is no {{."+name+"}}", "")
	case s.onJSON && name != "JSON" && len(path) > 1:
		s.fault(n, fmt.Sprintf("{{.%s}} has no fields", name), "")
	}
}

// plain rewords an error of text/template for people, and finds the line that it is
// about. Its patterns are made here, because most programs never need them.
func plain(err error) (line int, why string) {
	var (
		parsedAt   = regexp.MustCompile(`^template: prompt:(\d+):(?:\d+:)? `)
		executedAt = regexp.MustCompile(`^executing "prompt" at (<.*?>): `)
		startedAt  = regexp.MustCompile(` started at prompt:(\d+)$`)
		ourTypes   = regexp.MustCompile(`sources\.(Cron|File|Poll|Webhook)Data`)
	)
	line, why = 1, err.Error()
	if m := parsedAt.FindStringSubmatch(why); m != nil {
		line, _ = strconv.Atoi(m[1])
		why = why[len(m[0]):]
	}
	if m := startedAt.FindStringSubmatch(why); m != nil {
		line, _ = strconv.Atoi(m[1])
		why = strings.TrimSuffix(why, m[0])
	}
	why = executedAt.ReplaceAllString(why, "$1: ")
	return line, ourTypes.ReplaceAllString(why, "the prompt's data")
}

// plainFault returns an error of text/template with its offset in text.
func plainFault(text string, err error) (offset int, message, hint string) {
	if errors.Is(err, errPromptTooLong) {
		return 0, errPromptTooLong.Error(), ""
	}
	line, why := plain(err)
	for range line - 1 {
		offset += strings.IndexByte(text[offset:], '\n') + 1
	}
	message = "the template does not work: " + why
	if strings.Contains(text, "\n") {
		message = fmt.Sprintf("%s, in line %d of the prompt", message, line)
	}
	return offset, message, ""
}
