package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	generator "github.com/invopop/jsonschema"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"gopkg.in/yaml.v3"

	"heartbeat/sources"
)

// generate makes the schema from the types of document*.go and their comments.
func generate(t *testing.T) []byte {
	t.Helper()
	r := &generator.Reflector{
		Anonymous: true, RequiredFromJSONSchemaTags: true, ExpandedStruct: true, FieldNameTag: "yaml",
		Mapper: scalars,
		Namer: func(t reflect.Type) string {
			return strings.TrimSuffix(strings.TrimSuffix(t.Name(), "Keys"), "KeySet")
		},
	}
	docs := comments(t)
	r.LookupComment = func(t reflect.Type, field string) string { return docs[t.Name()+"."+field] }
	root := r.ReflectFromType(reflect.TypeFor[fileKeys]())
	root.Title = "heartbeat.yaml"
	for kind, of := range map[triggerKind]reflect.Type{
		cronKind: reflect.TypeFor[cronKeySet](), watchKind: reflect.TypeFor[watchKeySet](), pollKind: reflect.TypeFor[pollKeySet](),
		webhookKind: reflect.TypeFor[webhookKeySet](),
	} {
		s := r.ReflectFromType(of)
		s.Version = ""
		prompt, file := &generator.Schema{Required: []string{"prompt"}}, &generator.Schema{Required: []string{"prompt-file"}}
		if kind == pollKind {
			s.Not = &generator.Schema{Required: []string{"prompt", "prompt-file"}}
			byKey := generator.NewProperties()
			byKey.Set("dedupe", &generator.Schema{Const: "key"})
			s.If = &generator.Schema{Properties: byKey, Required: []string{"dedupe"}}
			s.Then = &generator.Schema{Required: []string{"key"}}
			s.Else = &generator.Schema{Not: &generator.Schema{Required: []string{"key"}}}
		} else {
			s.OneOf = []*generator.Schema{prompt, file}
		}
		delete(s.Definitions, string(kind))
		maps.Copy(root.Definitions, s.Definitions) // what it is made of
		s.Definitions = nil
		root.Definitions[string(kind)] = s
	}
	for _, of := range []reflect.Type{
		reflect.TypeFor[fileKeys](), reflect.TypeFor[targetKeySet](), reflect.TypeFor[pingKeySet](), reflect.TypeFor[agentKeySet](), reflect.TypeFor[cronKeySet](), reflect.TypeFor[watchKeySet](), reflect.TypeFor[pollKeySet](), reflect.TypeFor[webhookKeySet](),
	} {
		s := root
		if of != reflect.TypeFor[fileKeys]() {
			s = root.Definitions[r.Namer(of)]
		}
		declaredDefaults(t, s, of)
	}
	for of, key := range map[string]string{"target": "webhook", "ping": "url"} {
		ways := root.Definitions[of]
		for _, way := range []string{key, key + "-file", key + "-env", "command"} {
			ways.OneOf = append(ways.OneOf, &generator.Schema{Required: []string{way}})
		}
	}
	telegram := generator.NewProperties()
	telegram.Set("body", &generator.Schema{Const: "telegram"})
	root.Definitions["target"].OneOf = append(root.Definitions["target"].OneOf, &generator.Schema{
		Properties: telegram, Required: []string{"body"}, Not: either(slices.Clone(root.Definitions["target"].OneOf)...),
	})
	root.Definitions["target"].Not = &generator.Schema{Required: []string{"token-file", "token-env"}}
	isAside, approved := generator.NewProperties(), generator.NewProperties()
	isAside.Set("aside", &generator.Schema{Const: true})
	approved.Set("approve", &generator.Schema{MinItems: new(uint64(1))})
	until := root.Definitions["until"]
	until.If = &generator.Schema{Properties: isAside, Required: []string{"aside"}}
	until.Then = &generator.Schema{Properties: approved, Required: []string{"approve"}}
	agent := root.Definitions["agent"]
	agent.Not = &generator.Schema{Required: []string{"trigger", "triggers"}}
	names := &generator.Schema{Pattern: nameForm().String(), MaxLength: new(uint64(mostName))}
	variables := &generator.Schema{Pattern: variableForm().String(), Not: &generator.Schema{}}
	for _, name := range ownVariables {
		variables.Not.Enum = append(variables.Not.Enum, name)
	}
	agents := property(t, root, "agents")
	agents.PropertyNames, agents.AdditionalProperties = names, orNothing(agents.AdditionalProperties)
	property(t, root, "groups").PropertyNames = names
	property(t, root, "notify").PropertyNames = names
	property(t, agent, "env").PropertyNames = variables
	declared, included := generator.NewProperties(), generator.NewProperties()
	declared.Set("agents", &generator.Schema{Type: "object"})
	included.Set("include", &generator.Schema{MinItems: new(uint64(1))})
	root.PatternProperties = map[string]*generator.Schema{"^x-": {Description: "Anything, for anchors."}}
	root.AnyOf = []*generator.Schema{{Properties: declared, Required: []string{"agents"}}, {Properties: included, Required: []string{"include"}}}
	// Keys that are there and have nothing below them, as when all of it is
	// commented out.
	for _, nullable := range []struct {
		key string
		of  *generator.Schema
	}{
		{"defaults", root},
		{"approvals", root},
		{"groups", root},
		{"notify", root},
		{"agents", root},
		{"permissions", agent},
		{"env", agent},
		{"tool-timeouts", agent},
		{"limits", agent},
		{"approvals", agent},
		{"after", root.Definitions["approval"]},
		{"resources", agent},
		{"until", agent},
		{"until", root.Definitions["cron"]},
		{"until", root.Definitions["watch"]},
		{"until", root.Definitions["poll"]},
		{"until", root.Definitions["webhook"]},
		{"resources", root.Definitions["group"]},
		{"budget", root},
		{"budget", agent},
		{"budget", root.Definitions["group"]},
		{"hour", root.Definitions["budget"]},
		{"day", root.Definitions["budget"]},
		{"entry", root.Definitions["budget"]},
		{"listen", root},
		{"page", root},
		{"match", root.Definitions["webhook"]},
		{"headers", root.Definitions["match"]},
		{"json", root.Definitions["match"]},
		{"hour", root.Definitions["sharedBudget"]},
		{"day", root.Definitions["sharedBudget"]},
	} {
		key, of := nullable.key, nullable.of
		p := property(t, of, key)
		described := &generator.Schema{Description: p.Description, AnyOf: orNothing(p).AnyOf}
		p.Description = ""
		of.Properties.Set(key, described)
	}
	data, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return append(data, '\n')
}

// declaredDefaults adds the defaults that the generator leaves out: it takes
// them from a field's tag for plain types alone.
func declaredDefaults(t *testing.T, s *generator.Schema, of reflect.Type) {
	t.Helper()
	for f := range of.Fields() {
		if f.Anonymous {
			declaredDefaults(t, s, f.Type)
			continue
		}
		key, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		property, ok := s.Properties.Get(key)
		if !ok {
			t.Errorf("%s: no property %q", of, key)
			continue
		}
		for tag := range strings.SplitSeq(f.Tag.Get("jsonschema"), ",") {
			if value, ok := strings.CutPrefix(tag, "default="); ok && property.Default == nil {
				property.Default = value
			}
		}
	}
}

// comments are the doc comments of document*.go, by TYPE.FIELD and TYPE. (the
// generator reads those of exported types only).
func comments(t *testing.T) map[string]string {
	t.Helper()
	paths, err := filepath.Glob("document*.go")
	if err != nil || len(paths) == 0 {
		t.Fatalf("%q, %v", paths, err)
	}
	docs := map[string]string{}
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if declaration, ok := d.(*ast.GenDecl); ok {
				commentsOf(declaration, docs)
			}
		}
	}
	return docs
}

func commentsOf(declaration *ast.GenDecl, docs map[string]string) {
	for _, s := range declaration.Specs {
		named, ok := s.(*ast.TypeSpec)
		if !ok {
			continue
		}
		docs[named.Name.Name+"."] = strings.TrimSpace(declaration.Doc.Text())
		fields, ok := named.Type.(*ast.StructType)
		if !ok {
			continue
		}
		for _, f := range fields.Fields.List {
			for _, name := range f.Names {
				docs[named.Name.Name+"."+name.Name] = strings.TrimSpace(f.Doc.Text())
			}
		}
	}
}

func property(t *testing.T, s *generator.Schema, key string) *generator.Schema {
	t.Helper()
	p, ok := s.Properties.Get(key)
	if !ok {
		t.Fatalf("no property %q", key)
	}
	return p
}

func either(s ...*generator.Schema) *generator.Schema { return &generator.Schema{AnyOf: s} }

func orNothing(s *generator.Schema) *generator.Schema {
	return either(s, &generator.Schema{Type: "null"})
}

const durations = `^([0-9]+(\.[0-9]+)?w)?([0-9]+(\.[0-9]+)?d)?(([0-9]+(\.[0-9]*)?|\.[0-9]+)(h|ms|m|s|us|µs|μs|ns))*$`

// scalars describes the kinds of values that are no Go kind.
func scalars(t reflect.Type) *generator.Schema {
	but := func(pattern string) *generator.Schema { return &generator.Schema{Pattern: pattern} }
	text := func(pattern, never string) *generator.Schema {
		return &generator.Schema{Type: "string", Pattern: pattern, Not: but(never)}
	}
	words := func(text *generator.Schema) *generator.Schema {
		return either(text, &generator.Schema{Type: "number"}, &generator.Schema{Type: "boolean"})
	}
	const nul, control = `\x00`, `[\x00-\x1f\x7f-\x9f]`
	switch t {
	case reflect.TypeFor[triggerKeySet]():
		var kinds []*generator.Schema
		for _, kind := range kindKeys {
			kinds = append(kinds, &generator.Schema{Ref: "#/$defs/" + kind})
		}
		return &generator.Schema{OneOf: kinds}
	case reflect.TypeFor[nameText]():
		return &generator.Schema{Type: "string", Pattern: nameForm().String(), MaxLength: new(uint64(mostName))}
	case reflect.TypeFor[filledText]():
		return text(`\S`, nul)
	case reflect.TypeFor[pathText]():
		return text(`\S`, `^~[^/]|(^|[^$])(\$\$)*\$([A-Za-z_(]|\{[^}]*$)|`+control)
	case reflect.TypeFor[kickoffText]():
		return text(`^\s*[^\s/-]`, `[\x00-\x08\x0b-\x1f\x7f-\x9f]`)
	case reflect.TypeFor[webhookPath]():
		return &generator.Schema{Type: "string", Pattern: pathForm().String(), MaxLength: new(uint64(mostPath)), Not: &generator.Schema{Enum: []any{"/metrics", "/healthz", "/readyz"}}}
	case reflect.TypeFor[rateText]():
		return &generator.Schema{Type: "string", Pattern: `^[0-9]{1,4}/` + durations[1:], Not: but(`^0+/|/[^1-9]*$`)}
	case reflect.TypeFor[serviceName]():
		return &generator.Schema{Type: "string", Enum: []any{ServesWebhooks, ServesMetrics, ServesPage}}
	case reflect.TypeFor[wanted]():
		return either(words(text("", nul)), &generator.Schema{Type: "array", MinItems: new(uint64(1)), Items: words(text("", nul))})
	case reflect.TypeFor[variableGlob]():
		return text(`^[^/=]*[^/=\s][^/=]*$`, nul)
	case reflect.TypeFor[variableName]():
		return &generator.Schema{Type: "string", Pattern: variableForm().String()}
	case reflect.TypeFor[webAddress]():
		return &generator.Schema{Type: "string", Pattern: `^https?://[^/?#]`}
	case reflect.TypeFor[word]():
		return words(text("", nul))
	case reflect.TypeFor[argv]():
		return &generator.Schema{
			Type: "array", MinItems: new(uint64(1)), PrefixItems: []*generator.Schema{words(text(`\S`, nul))}, Items: words(text("", nul)),
		}
	case reflect.TypeFor[span]():
		return &generator.Schema{Type: "string", Pattern: durations, Not: but(`^[^1-9]*$`)}
	case reflect.TypeFor[limit]():
		return either(&generator.Schema{Type: "string", MinLength: new(uint64(1)), Pattern: durations}, &generator.Schema{Enum: []any{"none", 0, "0"}})
	case reflect.TypeFor[byteSize]():
		return either(
			&generator.Schema{Type: "string", Pattern: "^[0-9]{1,12} ?(B|kB|MB|KiB|MiB)?$", Not: but("^0+ ?[A-Za-z]*$")},
			&generator.Schema{Type: "integer", Minimum: "1", Maximum: json.Number(fmt.Sprint(mostEntry))},
		)
	case reflect.TypeFor[memorySize]():
		return either(
			&generator.Schema{Type: "string", Pattern: "^[0-9]{1,12} ?(B|kB|MB|GB|TB|KiB|MiB|GiB|TiB)?$", Not: but("^0+ ?[A-Za-z]*$")},
			&generator.Schema{Type: "integer", Minimum: json.Number(fmt.Sprint(leastMemory)), Maximum: json.Number(fmt.Sprint(mostMemory))},
		)
	case reflect.TypeFor[tokenCount]():
		return either(
			&generator.Schema{Type: "string", Pattern: `^[0-9]{1,12}(\.[0-9]{1,3})?[kM]?$`, Not: but(`^[0.]+[kM]?$`)},
			&generator.Schema{Type: "integer", Minimum: "1", Maximum: json.Number(fmt.Sprint(int64(mostTokens)))},
		)
	case reflect.TypeFor[approvalWord]():
		return &generator.Schema{Type: "string", Enum: []any{"read", "write", "execute", "destroy", "network", "auth"}}
	case reflect.TypeFor[percentage]():
		return either(&generator.Schema{Type: "string", Pattern: "^([1-9][0-9]?|100)%$"}, &generator.Schema{Const: "none"})
	case reflect.TypeFor[dollars]():
		return &generator.Schema{Type: "number", Minimum: json.Number(fmt.Sprint(leastCost)), Maximum: "1000000"}
	}
	return nil
}

// TestSchemaIsWhatTheTypesSay compares schema.json with what is generated.
func TestSchemaIsWhatTheTypesSay(t *testing.T) {
	t.Parallel()
	want := generate(t)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile("schema.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(string(want), string(Schema())); diff != "" {
		t.Errorf("UPDATE_GOLDEN=1 go test ./config writes it anew (-types +schema.json):\n%s", diff)
	}
}

// TestEveryKeyIsDescribed, as the descriptions are what editors show.
func TestEveryKeyIsDescribed(t *testing.T) {
	t.Parallel()
	n := 0
	for path, property := range properties(t) {
		n++
		if d, _ := property["description"].(string); len(d) < 10 || !strings.HasSuffix(d, ".") {
			t.Errorf("%s: description %q", path, d)
		}
	}
	if n < 60 {
		t.Errorf("%d keys", n)
	}
}

// properties are those of the schema, by DEFINITION.KEY.
func properties(t *testing.T) map[string]map[string]any {
	t.Helper()
	type object struct {
		Properties map[string]map[string]any
	}
	var root struct {
		object
		Defs map[string]object `json:"$defs"`
	}
	if err := json.Unmarshal(Schema(), &root); err != nil {
		t.Fatal(err)
	}
	all := map[string]map[string]any{}
	root.Defs["file"] = root.object
	for name, def := range root.Defs {
		for key, p := range def.Properties {
			all[name+"."+key] = p
		}
	}
	return all
}

func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("schema.json") // also checks it against the meta-schema
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// conforms checks YAML against the schema.
func conforms(t *testing.T, s *jsonschema.Schema, text []byte) error {
	t.Helper()
	var v any
	if err := yaml.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(doc)
}

var yamlBlock = regexp.MustCompile("(?ms)^( *)```yaml\n(.*?)^ *```")

// TestWhatWeShowConforms: examples, the starter, the files in the README and docs, and
// the one with every field.
func TestWhatWeShowConforms(t *testing.T) {
	t.Parallel()
	shown := map[string][]byte{"the starter": Starter(), "the reference": Reference(), "every field": []byte(everyField)}
	files, err := filepath.Glob("../examples/*/*.yaml")
	if err != nil || len(files) < 2 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		if shown[file], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	documents, err := filepath.Glob("../docs/*.md")
	if err != nil || len(documents) == 0 {
		t.Fatal(documents, err)
	}
	for _, file := range append(documents, "../README.md") {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i, block := range yamlBlock.FindAllSubmatch(data, -1) {
			text := bytes.ReplaceAll(block[2], append([]byte("\n"), block[1]...), []byte("\n"))
			shown[fmt.Sprint(file, " block ", i)] = bytes.TrimPrefix(text, block[1])
		}
	}
	if len(shown) < 5 {
		t.Errorf("only %d files", len(shown))
	}
	s := compiled(t)
	for name, text := range shown {
		if err := conforms(t, s, text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if strings.Contains(name, ".md block ") {
			if _, err := parseText("/nonexistent/heartbeat.yaml", text); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	broken, err := os.ReadFile("testdata/problems/everything.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if conforms(t, s, broken) == nil {
		t.Error("a broken file conforms")
	}
}

// declare returns a file in which one key of a definition has a value.
func declare(path, value string) string {
	def, key, _ := strings.Cut(path, ".")
	agent := func(fields string) string { return "version: 1\nagents: {a: {dir: x" + fields + "}}\n" }
	with := ""
	if value != "" {
		with = ", " + key + ": " + value
	}
	if path == "poll.dedupe" && value == "key" {
		with += `, key: "{{.Output}}"`
	}
	switch def {
	case "file":
		return strings.TrimPrefix(with+"\n", ", ") + agent("")
	case "approval":
		return agent(", approvals: {always: [read]" + with + "}")
	case "resource":
		return agent(", resources: {cpu: 1" + with + "}")
	case "until":
		if key == "check" {
			return agent(", until: {" + strings.TrimPrefix(with, ", ") + "}")
		}
		return agent(", until: {check: [x]" + with + "}")
	case "target", "ping":
		way := map[string]string{"target": "webhook", "ping": "url"}[def] + ": 'https://a.example'"
		if strings.HasPrefix(key, "webhook") || strings.HasPrefix(key, "url") || key == "command" {
			way, with = strings.TrimPrefix(with, ", "), ""
		}
		if path == "target.body" && value == "telegram" {
			with += ", chat: 1, token-file: x"
		}
		top := map[string]string{"target": "notify: {t: {" + way + with + "}}", "ping": "ping: {" + way + with + "}"}[def]
		return "version: 1\n" + top + "\nagents: {a: {dir: x}}\n"
	case "permission":
		return agent(", permissions: {allow: [Read]" + with + "}")
	case "cron":
		return agent(`, trigger: {cron: "@daily", prompt: x` + with + "}")
	case "watch":
		return agent(`, trigger: {watch: ["*"], prompt: x` + with + "}")
	case "poll":
		return agent(`, trigger: {poll: [x]` + with + "}")
	case "webhook":
		return agent(`, trigger: {webhook: /x, prompt: x`+with+"}") + `listen: [{address: ":1", serve: [webhooks]}]` + "\n"
	case "listen":
		return agent(`, trigger: {webhook: /x, prompt: x}`) + "listen: [{address: unix:x, serve: [webhooks]" + with + "}]\n"
	}
	return agent(with)
}

// TestEnumsAndDefaultsOfTheSchemaAreTheLoaders: the loader takes each word of
// an enum and no other, and a default changes nothing.
func TestEnumsAndDefaultsOfTheSchemaAreTheLoaders(t *testing.T) {
	t.Parallel()
	s := compiled(t)
	same := cmp.Options{cmpopts.IgnoreUnexported(Fleet{}), cmpopts.IgnoreFields(Fleet{}, "Texts"), cmp.Comparer(func(a, b sources.Schedule) bool { return a == b })}
	enums, defaults := 0, 0
	for path, property := range properties(t) {
		words, _ := property["enum"].([]any)
		if path == "file.version" {
			continue
		}
		for _, w := range words {
			enums++
			if text := declare(path, fmt.Sprint(w)); load(text) != nil || conforms(t, s, []byte(text)) != nil {
				t.Errorf("%s: %v: %v", path, w, load(text))
			}
		}
		if text := declare(path, "zzz"); words != nil && (load(text) == nil || conforms(t, s, []byte(text)) == nil) {
			t.Errorf("%s: any word is taken", path)
		}
		d, ok := property["default"]
		if !ok {
			continue
		}
		defaults++
		plain, err := parseText("/nonexistent/heartbeat.yaml", []byte(declare(path, "")))
		given, gerr := parseText("/nonexistent/heartbeat.yaml", []byte(declare(path, fmt.Sprint(d))))
		if err != nil || gerr != nil {
			t.Errorf("%s: %v, %v", path, err, gerr)
			continue
		}
		for _, f := range []*Fleet{plain, given} { // where things stand
			f.Agents[0].Line = 0
			for i := range f.Agents[0].Triggers {
				f.Agents[0].Triggers[i].Line = 0
			}
		}
		if diff := cmp.Diff(plain, given, same); diff != "" {
			t.Errorf("%s: %v is not the default (-without +with):\n%s", path, d, diff)
		}
	}
	if enums < 30 || defaults < 33 {
		t.Errorf("%d words of enums, %d defaults", enums, defaults)
	}
}

func load(text string) error {
	_, err := parseText("/nonexistent/heartbeat.yaml", []byte(text))
	return err
}

// TestSchemaAndLoaderAgree on values one by one.
func TestSchemaAndLoaderAgree(t *testing.T) {
	t.Parallel()
	s := compiled(t)
	for _, tt := range []struct {
		path, value string
		good        bool
	}{
		{"agent.timeout", "none", true},
		{"agent.timeout", "0", true},
		{"agent.timeout", "1d12h", true},
		{"agent.timeout", "1.5h", true},
		{"agent.timeout", "5", false},
		{"agent.timeout", "soon", false},
		{"agent.idle-interval", "none", false},
		{"agent.max-entry", "64KiB", true},
		{"agent.max-entry", "65536", true},
		{"agent.max-entry", "5 furlongs", false},
		{"agent.max-attempts", "0", false},
		{"agent.max-restarts", "0", true},
		{"agent.env", "{A: 5, B: yes, C: x}", true},
		{"agent.env", "{1A: 5}", false},
		{"agent.command", "[claude, 5]", true},
		{"agent.command", "[]", false},
		{"agent.command", "claude", false},
		{"agent.colour", "red", false},
		{"agent.trigger", "{}", false},
		{"agent.trigger", "{poll: [x], cron: '@daily', prompt: x}", false},
		{"agent.triggers", "[{poll: [x]}, {cron: '@daily', prompt: x}]", true},
		{"agent.trigger", "{poll: [y]}, triggers: [{poll: [x]}]", false},
		{"cron.prompt-file", "y", false},
		{"cron.jitter", "5m", true},
		{"cron.seconds", "true", true},
		{"cron.seconds", "perhaps", false},
		{"watch.removed", "maybe", false},
		{"watch.overlap", "skip", false},
		{"poll.dedupe", "content", true},
		{"file.max-sessions", "0", false},
		{"file.listen", "[{address: ':80', serve: [metrics]}]", true},
		{"file.listen", "[{address: ':80'}]", false},
		{"file.listen", "[{serve: [metrics]}]", false},
		{"file.listen", "[{address: ':80', serve: []}]", false},
		{"file.listen", "[{address: ':80', serve: [pages]}]", false},
		{"agent.max-queue", "100", true},
		{"agent.max-queue", "0", false},
		{"cron.rate", "10/1h", true},
		{"cron.rate", "10", false},
		{"cron.rate", "10/h", false},
		{"cron.rate", "0/1h", false},
		{"cron.rate", "10/0s", false},
		{"webhook.key", "'{{.JSON.id}}'", true},
		{"webhook.key", "''", false},
		{"webhook.overlap", "skip", false},
		{"webhook.match", "{json: {a: 1, b: [x, true]}, headers: {X-A: b}}", true},
		{"webhook.match", "{a: 1}", false},
		{"webhook.match", "{json: {a: []}}", false},
		{"webhook.match", "{json: {a: {b: 1}}}", false},
		{"file.groups", "{a: {}}", false},
		{"file.groups", "{a: {max-sessions: 1}}", true},
		{"file.name", "a/b", false},
		{"file.notify", "{phone: {webhook: 'https://ntfy.example/alerts', body: ntfy, tier: info, digest: 1h}}", true},
		{"file.notify", "{phone: {command: [./tell.sh], quiet-hours: '22:00-07:00'}}", true},
		{"file.notify", "{phone: {webhook: 'ftp://ntfy.example/alerts'}}", false},
		{"file.notify", "{phone: {webhook: 'https://a.example', token: x}}", false},
		{"file.notify", "{'a/b': {command: [x]}}", false},
		{"file.ping", "{url: 'https://a.example', every: 1m, form: plain}", true},
		{"file.ping", "{url: 'https://a.example', every: none}", false},
		{"agent.notify", "[]", true},
		{"agent.notify", "phone", false},
		{"agent.while-down", "refuse", true},
	} {
		text := declare(tt.path, tt.value)
		if err := conforms(t, s, []byte(text)); (err == nil) != tt.good {
			t.Errorf("schema, %s: %s: %v", tt.path, tt.value, err)
		}
		if err := load(text); (err == nil) != tt.good {
			t.Errorf("loader, %s: %s: %v", tt.path, tt.value, err)
		}
	}
}

// TestEveryKeyIsTried: the file with every field has each key of an agent and
// of its triggers.
func TestEveryKeyIsTried(t *testing.T) {
	t.Parallel()
	elsewhere := []string{"trigger", "group", "prompt-file"}
	for _, key := range append(slices.Clone(agentKeys), triggerKeys...) {
		if !slices.Contains(elsewhere, key) && !strings.Contains(everyField, " "+key+":") {
			t.Errorf("%s is not in everyField", key)
		}
	}
}

// TestTheReferenceNamesEveryKey: who reads it has seen all there is, and its defaults are
// the defaults.
func TestTheReferenceNamesEveryKey(t *testing.T) {
	t.Parallel()
	text := string(Reference())
	for _, key := range slices.Concat(topKeys, agentKeys, permissionKeys, resourceKeys, allowanceKeys, targetKeys, pingKeys, untilKeys, keys[budgetKeySet](), triggerKeys) {
		if key == "triggers" { // named in a sentence
			continue
		}
		if !regexp.MustCompile(`(?m)(^|[ {#,])` + key + `[:,;.]`).MatchString(text) {
			t.Errorf("%s is not named", key)
		}
	}
	_, block, ok := strings.Cut(text, "with their defaults:\n")
	block, _, more := strings.Cut(block, "\n\n")
	if !ok || !more {
		t.Fatal("there is no block of defaults")
	}
	const head = "version: 1\nagents:\n  a:\n    dir: a\n"
	bare, err := parseText("/nonexistent/heartbeat.yaml", []byte(head))
	if err != nil {
		t.Fatal(err)
	}
	all, err := parseText("/nonexistent/heartbeat.yaml", []byte(head+strings.ReplaceAll("\n"+block, "\n    # ", "\n    ")+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(bare.Agents, all.Agents); diff != "" {
		t.Errorf("(-without +with the defaults written out):\n%s", diff)
	}
}

// parseText is Load of a file that need not exist.
func parseText(path string, data []byte) (*Fleet, error) {
	return parse(path, data, newPlaces(identify), disk{}, nil)
}
