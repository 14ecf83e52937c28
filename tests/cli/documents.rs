//! What the documents say of the program is complete.

use bufgym::sim::switch::policy::catalogue;

#[test]
fn every_policy_and_parameter_is_in_the_table_of_policies() {
    let text = include_str!("../../docs/policies.md");
    for definition in catalogue() {
        let info = &definition.info;
        assert!(text.contains(&format!("`{}`", info.name)), "{}", info.name);
        for parameter in info.parameters {
            let row = format!("`{}`", parameter.name);
            assert!(text.contains(&row), "{}: {}", info.name, parameter.name);
        }
    }
}
