//! The classes of nodes that databases want.

use super::Style;
use super::screen::{Ink, Screen, span};
use untax_core::node_classes::{Class, Node, NodeClasses, Placed};
use untax_core::page_size;

/// Where labels end.
const COLUMN: usize = 14;

/// The classes, the nodes and what each database asks for.
pub fn node_classes(plan: &NodeClasses, style: Style) -> String {
    let mut screen = Screen::new(style);
    screen.line(&[span(Ink::Bold, "Classes of nodes")]);
    for class in &plan.classes {
        screen.labelled(&class.name, 2, Ink::Bold, &of_class(class), COLUMN);
    }
    screen.blank();
    screen.line(&[span(Ink::Bold, "The memory of each node")]);
    for node in &plan.nodes {
        screen.labelled(&node.node, 2, Ink::Plain, &of_node(node), COLUMN);
    }
    screen.blank();
    screen.line(&[span(Ink::Bold, "What each database asks for")]);
    for database in &plan.databases {
        let name = format!("{} {}", database.node, database.id);
        screen.labelled(&name, 2, Ink::Plain, &of_database(database), COLUMN);
    }
    screen.finish()
}

fn of_class(class: &Class) -> String {
    let pools = class.pools.iter();
    let mut words: Vec<String> = pools
        .map(|pool| {
            format!("{} pages of {}", pool.pages, page_size::kubernetes_word(pool.size_bytes))
        })
        .collect();
    if class.low_latency_disks {
        words.push("disks of low latency".to_owned());
    }
    if words.is_empty() {
        words.push("no pool".to_owned());
    }
    words.extend(class.taints.iter().map(|taint| format!("taint {taint}")));
    format!("{} nodes: {}", class.nodes, words.join(", "))
}

fn of_node(node: &Node) -> String {
    let [total, pools, databases, others, rest] = node.memory.parts();
    format!(
        "{}: {total} = {pools} pools + {databases} databases + {others} others + {rest} rest",
        node.class
    )
}

fn of_database(database: &Placed) -> String {
    let pages = database.huge_pages.as_ref();
    let pages = pages.map(|(resource, quantity)| format!("{resource}: {quantity}, "));
    format!("{}memory: {}", pages.unwrap_or_default(), database.memory_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use untax_core::Bytes;
    use untax_core::node_classes::{Balance, ClassPool, SCHEMA};

    #[test]
    fn the_screen_has_the_sum_of_each_node() {
        let gib = |n: u64| Bytes(n << 30);
        let class = Class {
            name: "database-2mi".to_owned(),
            nodes: 1,
            pools: vec![ClassPool { size_bytes: Bytes::MIB_2, pages: 4096 }],
            low_latency_disks: false,
            labels: [].into(),
            taints: vec!["dedicated=x:NoSchedule".to_owned()],
        };
        let node = Node {
            node: "a".to_owned(),
            class: class.name.clone(),
            memory: Balance::new(gib(24), gib(8), gib(1), gib(3)).unwrap(),
        };
        let placed = Placed {
            node: "a".to_owned(),
            id: "postgres:7".to_owned(),
            class: class.name.clone(),
            huge_pages: Some(("hugepages-2Mi".to_owned(), "8Gi".to_owned())),
            memory_bytes: gib(1),
        };
        let plan = NodeClasses {
            schema: SCHEMA,
            classes: vec![class],
            nodes: vec![node],
            databases: vec![placed],
        };
        let text = node_classes(&plan, Style { width: 100, ..Style::default() });
        for words in [
            "1 nodes: 4096 pages of 2Mi, taint dedicated=x:NoSchedule",
            "24 GiB = 8 GiB pools + 1 GiB databases + 3 GiB others + 12 GiB rest",
            "hugepages-2Mi: 8Gi, memory: 1 GiB",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
    }
}
