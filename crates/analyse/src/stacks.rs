//! All stacks that were asked for, as paths of one tree, with recursion folded.
//!
//! A recursive program has as many stacks as ways through its recursion, millions of them, and they tell
//! little more than a few of them do. So of a recursion only its beginning and its innermost round are
//! kept: a return address that occurs for the third time is a recursion, and frames between its second
//! beginning and the last round (at least [`INNER`] frames) are left out. What is outside of the recursion, and what
//! it has called, is kept whole. The frame inside of a gap knows of it, and so does the report.
//!
//! The stack that stands for another with one frame more depends on the former and the frame alone:
//! folding is a step from node to node, and whoever keeps frames with their nodes never has to fold again.

use raddle_model::Place;
use rustc_hash::FxHashMap;

/// Occurrences of a return address that make a recursion.
const REPEATED: usize = 3;
/// Frames kept where it begins.
const OUTER: usize = 2;
/// Frames kept of its inside at least, and at most.
const INNER: usize = 4;
const MOST_INNER: usize = 16;

/// Bits that no address has: the node has a gap around it; it is an instruction.
const GAP: u64 = 1 << 62;
const LEAF: u64 = 1 << 63;

/// All stacks: a node is a frame, and stands for itself and the frames around it. Zero is none.
#[derive(Debug, Default)]
pub struct Tree {
    /// From a node to that of a stack with one frame more, by the frame's address.
    steps: FxHashMap<(u32, u64), u32>,
    /// By the node around it, the address, and what it is.
    index: FxHashMap<(u32, u64), u32>,
    /// Node n is at n - 1.
    nodes: Vec<Node>,
}

#[derive(Debug)]
struct Node {
    /// The node around it; zero for none.
    outer: u32,
    address: u64,
    place: Place,
    /// Frames between it and the node around it were left out.
    gap: bool,
    /// The command knows it as a stack.
    told: bool,
}

impl Tree {
    /// The node of the stack `outer` with one frame more, which returns to this address.
    pub fn enter(&mut self, outer: u32, address: u64, place: impl FnOnce() -> Place) -> u32 {
        if let Some(node) = self.steps.get(&(outer, address)) {
            return *node;
        }
        let node = match self.fold(outer, address) {
            Some((outer, kept)) => self.rebuild(outer, &kept, address, place),
            None => self.add(outer, address, 0, place),
        };
        self.steps.insert((outer, address), node);
        node
    }

    /// The node of an instruction in the innermost function of the stack `outer`: never folded.
    pub fn leaf(&mut self, outer: u32, address: u64, place: Place) -> u32 {
        self.add(outer, address, LEAF, || place)
    }

    /// Is this frame one too many of a recursion? Then what remains: the node outside of the gap, and the
    /// frames inside of it, outermost first.
    fn fold(&self, outer: u32, address: u64) -> Option<(u32, Vec<u32>)> {
        let path = self.path(outer);
        let repeats = || path.iter().enumerate().filter(|(_, n)| self.node(**n).address == address);
        let (last, _) = repeats().next()?;
        // The innermost frame is number zero of the path; the new one is inside of it.
        let gap = path.iter().rposition(|n| self.node(*n).gap);
        let kept = (last + 1).clamp(INNER, MOST_INNER) - 1;
        let outside = match gap {
            Some(gap) => gap + 1,
            None if repeats().count() + 1 >= REPEATED => {
                let (first, _) = repeats().next_back()?;
                (first + 1).checked_sub(OUTER)?
            }
            None => return None,
        };
        // Frames `outside..` stay, and so do `..kept`.
        (outside > kept).then(|| {
            let around = path.get(outside).copied().unwrap_or(0);
            (around, path[..kept].iter().rev().copied().collect())
        })
    }

    /// The frames `kept` behind a gap, and a new one.
    fn rebuild(
        &mut self,
        mut outer: u32,
        kept: &[u32],
        address: u64,
        place: impl FnOnce() -> Place,
    ) -> u32 {
        let mut gap = GAP;
        for node in kept {
            let (address, place) = (self.node(*node).address, self.node(*node).place);
            outer = self.add(outer, address, std::mem::take(&mut gap), || place);
        }
        self.add(outer, address, gap, place)
    }

    fn add(&mut self, outer: u32, address: u64, what: u64, place: impl FnOnce() -> Place) -> u32 {
        *self.index.entry((outer, address | what)).or_insert_with(|| {
            let gap = what == GAP;
            self.nodes.push(Node { outer, address, place: place(), gap, told: false });
            self.nodes.len() as u32
        })
    }

    fn node(&self, node: u32) -> &Node {
        &self.nodes[node as usize - 1]
    }

    /// From the node itself outwards.
    fn path(&self, node: u32) -> Vec<u32> {
        let next = |node: &u32| Some(self.node(*node).outer).filter(|outer| *outer != 0);
        std::iter::successors(Some(node).filter(|node| *node != 0), next).collect()
    }

    /// The frames of a stack, innermost first, with [`Place::RECURSION`] for what was left out.
    pub fn places(&self, node: u32) -> Vec<Place> {
        let mut places = Vec::new();
        for node in self.path(node).into_iter().map(|node| self.node(node)) {
            places.push(node.place);
            places.extend(node.gap.then_some(Place::RECURSION));
        }
        places
    }

    /// Marks a stack as told to the command. True if it was, or there is no such stack.
    pub fn is_told(&mut self, node: u32) -> bool {
        let node = (node as usize).checked_sub(1).and_then(|at| self.nodes.get_mut(at));
        node.is_none_or(|node| std::mem::replace(&mut node.told, true))
    }

    /// None was told.
    pub fn forget_told(&mut self) {
        self.nodes.iter_mut().for_each(|node| node.told = false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raddle_model::ModuleId;

    fn place(address: u64) -> Place {
        Place { module: ModuleId(1), offset: address }
    }

    /// The stack of these calls, outermost first, innermost first; `…` is what was left out.
    fn folded(tree: &mut Tree, calls: &str) -> String {
        let mut node = 0;
        for call in calls.bytes() {
            node = tree.enter(node, u64::from(call), || place(u64::from(call)));
        }
        let shown = |place: &Place| match *place {
            Place::RECURSION => '…',
            place => char::from(place.offset as u8),
        };
        tree.places(node).iter().map(shown).collect()
    }

    #[test]
    fn only_a_recursion_is_folded() {
        let mut tree = Tree::default();
        let all = "abcdefghijklmnopqrstuvwxyz";
        let reversed: String = all.chars().rev().collect();
        assert_eq!(folded(&mut tree, all), reversed);
        // Twice the same call is not one yet, however far apart.
        assert_eq!(folded(&mut tree, "mabcdefghijabcdefghij"), "jihgfedcbajihgfedcbam");
        // Nor is a short one shortened.
        assert_eq!(folded(&mut tree, "mrrrrrr"), "rrrrrrm");
    }

    #[test]
    fn of_a_recursion_begin_and_inside_are_kept() {
        let mut tree = Tree::default();
        assert_eq!(folded(&mut tree, "mrrrrrrr"), "rrrr…rrm");
        assert_eq!(folded(&mut tree, "mrrrrrrrrrrrrrrrrrr"), "rrrr…rrm");
        // What it has called is whole.
        assert_eq!(folded(&mut tree, "mrrrrrrrrrrrabcdefgh"), "hgfedcbarrrr…rrm");
        // Two calls of the same function.
        assert_eq!(folded(&mut tree, "mlrlrrllrlrlll"), "lllr…rlm");
        // A whole round.
        assert_eq!(folded(&mut tree, "mabcdefabcdefabcdefabcdefabc"), "cbafed…bam");
    }

    #[test]
    fn a_recursions_stacks_are_few() {
        let mut tree = Tree::default();
        let mut nodes = vec![tree.enter(0, 1, || place(1))];
        for _ in 0..18 {
            let next = nodes.iter().flat_map(|node| [(*node, 2), (*node, 3)]).collect::<Vec<_>>();
            nodes = next.iter().map(|(n, a)| tree.enter(*n, *a, || place(*a))).collect();
            nodes.sort_unstable();
            nodes.dedup();
        }
        assert!(tree.nodes.len() < 2000, "{}", tree.nodes.len());
    }

    #[test]
    fn an_instruction_is_no_frame() {
        let mut tree = Tree::default();
        let outer = tree.enter(0, 7, || place(7));
        let leaf = tree.leaf(outer, 7, place(7));
        assert_eq!(tree.leaf(outer, 7, place(7)), leaf);
        assert_ne!(tree.enter(outer, 7, || place(7)), leaf);
        assert!(!tree.is_told(leaf));
        assert!(tree.is_told(leaf));
    }
}
