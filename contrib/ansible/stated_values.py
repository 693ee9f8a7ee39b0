#!/usr/bin/python
"""Ansible module: keys of stated as a task declares them.

Copy it to library/ beside a playbook. It runs `statectl apply`, so all keys of a task are one commit, rules hold, and
a second run changes nothing. It has check mode and diff mode.
"""

import json
import subprocess

DOCUMENTATION = r"""
module: stated_values
short_description: Declares values in stated
description:
  - Makes keys of the state daemon C(stated) what the task says, in one commit.
  - A name that ends in C(/) is a prefix of the names in its dictionary. Any other name is a key, whatever its value is.
    A string is its text; any other value is its JSON. C(null) deletes the key.
options:
  values:
    description: Keys and values, with prefixes as dictionaries.
    type: dict
    required: true
  prune:
    description: Whether to delete the other keys below the prefixes in I(values).
    type: bool
    default: false
  socket:
    description: The daemon's socket; by default the one that C(statectl) uses.
    type: path
  executable:
    description: The C(statectl) to run.
    type: str
    default: statectl
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
"""

EXAMPLES = r"""
- name: Sound of the appliance
  stated_values:
    prune: true
    values:
      audio/:
        volume: 0.7
        device: hw:0
        eq/: { bass: 2 }
      system/hostname: "{{ inventory_hostname }}"
"""

RETURN = r"""
revision:
  description: The revision of the commit.
  type: int
  returned: when something changed, and not in check mode
changes:
  description: The keys that changed, in key order, each with C(op), C(key), C(value) and C(previous).
  type: list
  returned: success
"""


def command(params, check_mode):
    """The command that makes the values what the task says."""
    words = [params["executable"]]
    if params.get("socket"):
        words += ["--socket", params["socket"]]
    words += ["apply", "-", "--json"]
    if params.get("prune"):
        words.append("--prune")
    if check_mode:
        words.append("--dry-run")
    return words


def parse(output):
    """The changes, and the last line of `statectl apply --json`."""
    lines = [json.loads(line) for line in output.splitlines() if line]
    if not lines or "count" not in lines[-1]:
        raise ValueError("statectl printed no count: it is too old")
    return lines[:-1], lines[-1]


def text(change, name):
    """A value as text; one that is not UTF-8 as its base64."""
    other = {"value": "base64", "previous": "previousBase64"}[name]
    value = change.get(name)
    return value if value is not None else change.get(other)


def diff(changes):
    """The changes as Ansible shows them."""
    sides = {"previous": "", "value": ""}
    for change in changes:
        for name in sides:
            value = text(change, name)
            if value is not None:
                sides[name] += "%s = %s\n" % (change["key"], value.replace("\\", "\\\\").replace("\n", "\\n"))
    return {"before": sides["previous"], "after": sides["value"]}


def apply(params, check_mode=False, run=subprocess.run):
    """Runs the task; returns its result, of which `failed` says whether it failed."""
    try:
        done = run(
            command(params, check_mode),
            input=json.dumps(params["values"]).encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            check=False,
        )
    except OSError as error:
        return {"failed": True, "changed": False, "msg": "%s: %s" % (params["executable"], error)}
    if done.returncode != 0:
        message = done.stderr.decode(errors="replace").strip()
        return {"failed": True, "changed": False, "msg": message, "rc": done.returncode}
    try:
        changes, last = parse(done.stdout.decode())
    except ValueError as error:
        return {"failed": True, "changed": False, "msg": str(error)}
    result = {"failed": False, "changed": bool(changes), "changes": changes, "diff": diff(changes)}
    if "revision" in last:
        result["revision"] = last["revision"]
    return result


def main():
    """Runs as a module of Ansible."""
    from ansible.module_utils.basic import AnsibleModule

    module = AnsibleModule(
        argument_spec={
            "values": {"type": "dict", "required": True},
            "prune": {"type": "bool", "default": False},
            "socket": {"type": "path"},
            "executable": {"type": "str", "default": "statectl"},
        },
        supports_check_mode=True,
    )
    result = apply(module.params, module.check_mode)
    if result.pop("failed"):
        module.fail_json(**result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
