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

// unknownFields finds the fields that a template uses and that sample lacks. It
// checks only what is outside define, and leaves the bodies of range and with to
// the trial run, because the dot means something else there.
func unknownFields(t *template.Template, sample any) []Fault {
	data := reflect.TypeOf(sample)
	if t.Tree == nil || data == nil || data.Kind() != reflect.Struct {
		return nil
	}
	s := fieldSearch{data: data}
	s.list(t.Root, true)
	return s.faults
}

type fieldSearch struct {
	data   reflect.Type
	faults []Fault
}

func (s *fieldSearch) list(l *parse.ListNode, ours bool) {
	if l == nil {
		return
	}
	for _, n := range l.Nodes {
		s.node(n, ours)
	}
}

// node checks a node and everything below it; ours says that the dot is the
// prompt's data.
func (s *fieldSearch) node(n parse.Node, ours bool) {
	switch n := n.(type) {
	case *parse.ActionNode:
		s.pipe(n.Pipe, ours)
	case *parse.TemplateNode:
		s.pipe(n.Pipe, ours)
	case *parse.IfNode:
		s.branch(&n.BranchNode, ours, ours)
	case *parse.WithNode:
		s.branch(&n.BranchNode, ours, false)
	case *parse.RangeNode:
		s.branch(&n.BranchNode, ours, false)
	case *parse.PipeNode:
		s.pipe(n, ours)
	case *parse.ChainNode:
		s.node(n.Node, ours)
	case *parse.FieldNode:
		if ours {
			s.field(n, n.Ident[0])
		}
	case *parse.VariableNode: // $ is the prompt's data everywhere
		if n.Ident[0] == "$" && len(n.Ident) > 1 {
			s.field(n, n.Ident[1])
		}
	}
}

func (s *fieldSearch) branch(b *parse.BranchNode, ours, inside bool) {
	s.pipe(b.Pipe, ours)
	s.list(b.List, inside)
	s.list(b.ElseList, ours)
}

func (s *fieldSearch) pipe(p *parse.PipeNode, ours bool) {
	if p == nil {
		return
	}
	for _, c := range p.Cmds {
		for _, arg := range c.Args {
			s.node(arg, ours)
		}
	}
}

func (s *fieldSearch) field(n parse.Node, name string) {
	_, field := s.data.FieldByName(name)
	if _, method := s.data.MethodByName(name); !field && !method {
		s.faults = append(s.faults, Fault{Offset: int(n.Position()), Message: "there is no {{." + name + "}}"})
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
