package settings

import "bytes"

// Trust returns the client's own file (.claude.json) with
// projects[dir].hasTrustDialogAccepted set to true, which is what the client writes
// when a person says that they trust the files of a folder (measured in 2.1.329).
// Nothing else changes. An *Error says where the file cannot be understood.
func Trust(file []byte, dir string) (trusted []byte, changed bool, err error) {
	const key = "hasTrustDialogAccepted"
	d, err := readWhole(file)
	if err != nil {
		return nil, false, err
	}
	m := merger{document: d}
	projects, err := d.want(d.root.find("projects"), '{', "projects")
	if err != nil {
		return nil, false, err
	}
	if projects == nil {
		m.extend(nil, "projects", []any{member{dir, object{{key, true}}}})
		m.splices = append(m.splices, m.change(d.root, nil, m.root)...)
		return d.apply(m.splices), true, nil
	}
	project, err := d.want(projects.find(dir), '{', "projects["+quoted(dir)+"]")
	if err != nil {
		return nil, false, err
	}
	switch {
	case project == nil:
		m.splices = m.change(projects, nil, []any{member{dir, object{{key, true}}}})
	case project.find(key) == nil:
		m.splices = m.change(project, nil, []any{member{key, true}})
	default:
		v := project.find(key)
		m.splices = []splice{{v.start, v.end, "true"}}
	}
	trusted = d.apply(m.splices)
	return trusted, !bytes.Equal(trusted, file), nil
}
