//! Debug information as a graph of entries that can be asked for their attributes.
//!
//! [`Sections`] takes the sections out of a file (uncompressing where needed, sharing the file's bytes
//! where not); a [`View`] is a short-lived reader over them. An entry is named by a [`Die`], so
//! indexes can outlive a view. Only what the symboliser needs is here: partial units, references
//! between units, type signatures (DWARF 5) and dwz's supplementary file. Of split DWARF (`.dwo`, `.dwp`)
//! only functions are read, by [`crate::frames`]; variables are then known by the symbol table.

use crate::elf::Image;
use gimli::{
    AttributeValue, DebugInfoOffset, DebuggingInformationEntry, DwAt, DwLang, DwTag,
    EndianArcSlice, EndianSlice, LittleEndian, SectionId, UnitOffset, UnitType,
};
use std::borrow::Cow;
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::ops::Range;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

/// Borrowed bytes of a section.
pub(crate) type Slice<'d> = EndianSlice<'d, LittleEndian>;
/// Owned bytes of a section.
pub(crate) type Shared = EndianArcSlice<LittleEndian>;

/// The sections of one file, and of its supplementary file.
pub(crate) struct Sections {
    main: gimli::DwarfSections<Shared>,
    supplementary: Option<gimli::DwarfSections<Shared>>,
}

impl Sections {
    /// Takes the sections out of a file with debug information.
    pub fn load(image: &Image, supplementary: Option<&Image>) -> Sections {
        let sections = |image: &Image| {
            let Ok(sections) = gimli::DwarfSections::load(|id| {
                Ok::<_, std::convert::Infallible>(section(image, id))
            });
            sections
        };
        Sections { main: sections(image), supplementary: supplementary.map(sections) }
    }

    /// For reading here and now: the fast way.
    pub fn borrow(&self) -> gimli::Dwarf<Slice<'_>> {
        let slice = |section| EndianSlice::new(Shared::bytes(section), LittleEndian);
        self.main.borrow_with_sup(self.supplementary.as_ref(), slice)
    }

    /// For keeping.
    pub fn share(&self) -> gimli::Dwarf<Shared> {
        self.main.borrow_with_sup(self.supplementary.as_ref(), Shared::clone)
    }
}

/// The half of a unit's debug information that the compiler left in a file of its own (`.dwo`).
pub(crate) fn split_half(image: &Image, parent: &gimli::Dwarf<Shared>) -> gimli::Dwarf<Shared> {
    let Ok(mut half) =
        gimli::Dwarf::load(|id| Ok::<_, std::convert::Infallible>(split_section(image, id)));
    half.make_dwo(parent);
    half
}

/// Many such halves, packed into one file (`.dwp`).
pub(crate) fn package(image: &Image) -> Option<gimli::DwarfPackage<Shared>> {
    let empty = Shared::new(Arc::from([]), LittleEndian);
    let load = |id| Ok::<_, gimli::Error>(split_section(image, id));
    gimli::DwarfPackage::load(load, empty).ok()
}

fn split_section(image: &Image, id: SectionId) -> Shared {
    match id.dwo_name().map(|name| image.section_data(name)) {
        Some(data) => Shared::new(Arc::from(&*data), LittleEndian),
        None => Shared::new(Arc::from([]), LittleEndian),
    }
}

fn section(image: &Image, id: SectionId) -> Shared {
    let unused = matches!(
        id,
        SectionId::DebugLoc
            | SectionId::DebugLocLists
            | SectionId::DebugMacinfo
            | SectionId::DebugMacro
            | SectionId::DebugNames
    );
    if unused {
        return Shared::new(Arc::from([]), LittleEndian);
    }
    if let Some(range) = image.section_range(id.name()) {
        return Shared::new(image.bytes.clone(), LittleEndian).range(range);
    }
    let mut data = image.section_data(id.name());
    if data.is_empty() {
        data = image.section_data(&id.name().replacen(".debug", ".zdebug", 1));
    }
    Shared::new(Arc::from(&*data), LittleEndian)
}

/// Names an entry: its position in the `.debug_info` of the file or of the supplementary file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Die {
    pub supplementary: bool,
    pub offset: usize,
}

/// A reader over the sections of one module.
pub(crate) struct View<'d> {
    dwarf: &'d gimli::Dwarf<Slice<'d>>,
    main: UnitSet<'d>,
    supplementary: Option<UnitSet<'d>>,
    signatures: OnceCell<HashMap<u64, Die>>,
}

/// The units of one file: where they start, and those parsed so far.
struct UnitSet<'d> {
    dwarf: &'d gimli::Dwarf<Slice<'d>>,
    starts: Vec<usize>,
    parsed: RefCell<HashMap<usize, Rc<Unit<'d>>>>,
}

/// One compilation unit.
pub(crate) struct Unit<'d> {
    pub unit: gimli::Unit<Slice<'d>>,
    pub language: Option<DwLang>,
    dwarf: &'d gimli::Dwarf<Slice<'d>>,
    supplementary: bool,
    start: usize,
}

/// One entry with its attributes.
pub(crate) struct Entry<'d> {
    pub unit: Rc<Unit<'d>>,
    pub die: Die,
    raw: DebuggingInformationEntry<Slice<'d>>,
}

impl<'d> View<'d> {
    pub fn new(dwarf: &'d gimli::Dwarf<Slice<'d>>) -> View<'d> {
        View {
            dwarf,
            main: UnitSet::new(dwarf),
            supplementary: dwarf.sup().map(UnitSet::new),
            signatures: OnceCell::new(),
        }
    }

    pub fn entry(&self, die: Die) -> Option<Entry<'d>> {
        let unit = self.unit(die)?;
        let offset = UnitOffset(die.offset.checked_sub(unit.start)?);
        let raw = unit.unit.entry(offset).ok()?;
        Some(Entry { unit, die, raw })
    }

    /// The entries directly below this one.
    pub fn children(&self, entry: &Entry<'d>) -> Vec<Entry<'d>> {
        let mut found = Vec::new();
        let Ok(mut tree) = entry.unit.unit.entries_tree(Some(entry.raw.offset())) else {
            return found;
        };
        let Ok(root) = tree.root() else { return found };
        let mut children = root.children();
        while let Ok(Some(child)) = children.next() {
            found.push(entry.unit.entry(child.entry().clone()));
        }
        found
    }

    /// The entry an attribute refers to.
    pub fn follow(&self, entry: &Entry<'d>, attribute: DwAt) -> Option<Entry<'d>> {
        self.entry(self.reference(&entry.unit, entry.raw.attr_value(attribute)?)?)
    }

    fn reference(&self, unit: &Unit<'d>, value: AttributeValue<Slice<'d>>) -> Option<Die> {
        match value {
            AttributeValue::DebugTypesRef(signature) => {
                self.signatures.get_or_init(|| self.type_units()).get(&signature.0).copied()
            }
            value => unit.reference(&value),
        }
    }

    /// The type of a variable, which may stand on its declaration or abstract entry.
    pub fn variable_type(&self, die: Die) -> Option<Entry<'d>> {
        self.declarations(die).iter().find_map(|entry| self.follow(entry, gimli::DW_AT_type))
    }

    /// An entry and those it completes, whose attributes are also its own.
    pub fn declarations(&self, die: Die) -> Vec<Entry<'d>> {
        /// Instance, abstract entry, declaration; more go in circles.
        const MAX: usize = 4;
        let mut chain: Vec<Entry<'d>> = self.entry(die).into_iter().collect();
        while let Some(last) = chain.last().filter(|_| chain.len() < MAX) {
            let next = self
                .follow(last, gimli::DW_AT_specification)
                .or_else(|| self.follow(last, gimli::DW_AT_abstract_origin));
            match next {
                Some(next) => chain.push(next),
                None => break,
            }
        }
        chain
    }

    /// The named scopes around an entry, outermost first: namespaces, classes, functions.
    pub fn scopes(&self, die: Die) -> Vec<Entry<'d>> {
        let Some(unit) = self.unit(die) else { return Vec::new() };
        let target = UnitOffset(die.offset - unit.start);
        let mut scopes = Vec::new();
        let mut at = unit.unit.header.root_offset();
        // Down from the root: at each level, into the last child that does not start after us.
        while let Some(child) = last_child_before(&unit, at, target) {
            if child.offset() == target {
                break;
            }
            at = child.offset();
            scopes.push(unit.entry(child));
        }
        scopes
    }

    fn unit(&self, die: Die) -> Option<Rc<Unit<'d>>> {
        let set = if die.supplementary { self.supplementary.as_ref()? } else { &self.main };
        set.unit(die)
    }

    fn type_units(&self) -> HashMap<u64, Die> {
        let mut found = HashMap::new();
        let mut headers = self.dwarf.units();
        while let Ok(Some(header)) = headers.next() {
            if let UnitType::Type { type_signature, type_offset } = header.type_() {
                let start = header.debug_info_offset().map_or(0, |offset| offset.0);
                let die = Die { supplementary: false, offset: start.saturating_add(type_offset.0) };
                found.insert(type_signature.0, die);
            }
        }
        found
    }
}

impl<'d> UnitSet<'d> {
    fn new(dwarf: &'d gimli::Dwarf<Slice<'d>>) -> Self {
        let mut starts = Vec::new();
        let mut headers = dwarf.units();
        while let Ok(Some(header)) = headers.next() {
            starts.extend(header.debug_info_offset().map(|offset| offset.0));
        }
        UnitSet { dwarf, starts, parsed: RefCell::default() }
    }

    fn unit(&self, die: Die) -> Option<Rc<Unit<'d>>> {
        let after = self.starts.partition_point(|&start| start <= die.offset);
        let start = self.starts[..after].last().copied()?;
        if let Some(unit) = self.parsed.borrow().get(&start) {
            return Some(unit.clone());
        }
        let header = self.dwarf.unit_header(DebugInfoOffset(start)).ok()?;
        let unit = Rc::new(Unit::new(self.dwarf, header, die.supplementary)?);
        self.parsed.borrow_mut().insert(start, unit.clone());
        Some(unit)
    }
}

impl<'d> Unit<'d> {
    pub fn new(
        dwarf: &'d gimli::Dwarf<Slice<'d>>,
        header: gimli::UnitHeader<Slice<'d>>,
        supplementary: bool,
    ) -> Option<Self> {
        let start = header.debug_info_offset()?.0;
        let unit = dwarf.unit(header).ok()?;
        let root = unit.entry(unit.header.root_offset()).ok();
        let language = match root.and_then(|root| root.attr_value(gimli::DW_AT_language)) {
            Some(AttributeValue::Language(language)) => Some(language),
            _ => None,
        };
        Some(Unit { unit, language, dwarf, supplementary, start })
    }

    pub fn is_rust(&self) -> bool {
        self.language == Some(gimli::DW_LANG_Rust)
    }

    pub fn is_c(&self) -> bool {
        is_c(self.language)
    }

    /// May the unit hold entries with this tag? Asks the table of entry shapes only.
    pub fn has_tag(&self, tag: DwTag) -> bool {
        let shapes = (1..).map_while(|code| self.unit.abbreviations.get(code));
        shapes.into_iter().any(|shape| shape.tag() == tag)
    }

    /// The variables with a fixed address, static ones inside functions included.
    pub fn variables(&self) -> Vec<(u64, Die)> {
        self.variables_at(|location| self.fixed_address(location))
    }

    /// The thread-local variables, by their offsets in the segment of those.
    pub fn thread_locals(&self) -> Vec<(u64, Die)> {
        self.variables_at(|location| self.thread_local_offset(location))
    }

    fn variables_at(
        &self,
        place: impl Fn(&AttributeValue<Slice<'d>>) -> Option<u64>,
    ) -> Vec<(u64, Die)> {
        let mut found = Vec::new();
        // A unit that breaks off keeps what was found so far.
        let _ = self.read_variables(&mut found, place);
        found
    }

    fn read_variables(
        &self,
        found: &mut Vec<(u64, Die)>,
        place: impl Fn(&AttributeValue<Slice<'d>>) -> Option<u64>,
    ) -> gimli::Result<()> {
        let mut entries = self.unit.entries_raw(None)?;
        while !entries.is_empty() {
            let offset = entries.next_offset();
            let Some(shape) = entries.read_abbreviation()? else { continue };
            let located = shape.tag() == gimli::DW_TAG_variable
                && shape.attributes().iter().any(|a| a.name() == gimli::DW_AT_location);
            if !located {
                entries.skip_attributes(shape.attributes())?;
                continue;
            }
            for specification in shape.attributes() {
                let attribute = entries.read_attribute(*specification)?;
                if attribute.name() == gimli::DW_AT_location
                    && let Some(address) = place(&attribute.value())
                {
                    found.push((address, self.die(offset)));
                }
            }
        }
        Ok(())
    }

    /// The file an index of this unit (`DW_AT_decl_file`) means.
    pub fn file(&self, index: u64) -> Option<PathBuf> {
        let header = self.unit.line_program.as_ref()?.header();
        let file = header.file(index)?;
        let text = |value| self.dwarf.attr_string(&self.unit, value).ok();
        let mut path = PathBuf::new();
        let directories = [self.unit.comp_dir, file.directory(header).and_then(text)];
        for part in directories.into_iter().flatten().chain(text(file.path_name())) {
            path.push(&*part.to_string_lossy());
        }
        Some(path)
    }

    /// The entry a reference that stays among the units means.
    pub fn reference(&self, value: &AttributeValue<Slice<'d>>) -> Option<Die> {
        let (supplementary, offset) = match value {
            AttributeValue::UnitRef(offset) => {
                (self.supplementary, self.start.saturating_add(offset.0))
            }
            AttributeValue::DebugInfoRef(offset) => (self.supplementary, offset.0),
            AttributeValue::DebugInfoRefSup(offset) => (true, offset.0),
            _ => return None,
        };
        Some(Die { supplementary, offset })
    }

    pub fn die(&self, offset: UnitOffset) -> Die {
        Die { supplementary: self.supplementary, offset: self.start + offset.0 }
    }

    pub fn string(&self, value: AttributeValue<Slice<'d>>) -> Option<Slice<'d>> {
        self.dwarf.attr_string(&self.unit, value).ok()
    }

    /// The code of an entry of this unit.
    pub fn ranges(&self, raw: &DebuggingInformationEntry<Slice<'d>>) -> Vec<Range<u64>> {
        let mut found = Vec::new();
        let Ok(mut ranges) = self.dwarf.die_ranges(&self.unit, raw) else { return found };
        while let Ok(Some(range)) = ranges.next() {
            found.push(range.begin..range.end);
        }
        found
    }

    fn entry(self: &Rc<Self>, raw: DebuggingInformationEntry<Slice<'d>>) -> Entry<'d> {
        Entry { unit: self.clone(), die: self.die(raw.offset()), raw }
    }
}

impl<'d> Entry<'d> {
    pub fn tag(&self) -> DwTag {
        self.raw.tag()
    }

    /// Its code.
    pub fn ranges(&self) -> Vec<Range<u64>> {
        self.unit.ranges(&self.raw)
    }

    pub fn value(&self, attribute: DwAt) -> Option<AttributeValue<Slice<'d>>> {
        self.raw.attr_value(attribute)
    }

    pub fn has(&self, attribute: DwAt) -> bool {
        self.raw.has_attr(attribute)
    }

    pub fn number(&self, attribute: DwAt) -> Option<u64> {
        match self.value(attribute)? {
            AttributeValue::FileIndex(index) => Some(index),
            AttributeValue::Sdata(number) => u64::try_from(number).ok(),
            value => value.udata_value(),
        }
    }

    pub fn text(&self, attribute: DwAt) -> Option<Cow<'d, str>> {
        Some(self.unit.string(self.value(attribute)?)?.to_string_lossy())
    }

    pub fn name(&self) -> Option<Cow<'d, str>> {
        self.text(gimli::DW_AT_name)
    }
}

impl<'d> Unit<'d> {
    /// The address that an expression of the single operation `DW_OP_addr` means.
    fn fixed_address(&self, location: &AttributeValue<Slice<'d>>) -> Option<u64> {
        let mut operations = location.exprloc_value()?.operations(self.unit.encoding());
        let address = match operations.next().ok()?? {
            gimli::Operation::Address { address } => address,
            gimli::Operation::AddressIndex { index } => {
                self.dwarf.address(&self.unit, index).ok()?
            }
            _ => return None,
        };
        operations.next().ok()?.is_none().then_some(address)
    }

    /// The offset that an expression of a constant and `DW_OP_form_tls_address` means.
    fn thread_local_offset(&self, location: &AttributeValue<Slice<'d>>) -> Option<u64> {
        let mut operations = location.exprloc_value()?.operations(self.unit.encoding());
        let offset = match operations.next().ok()?? {
            gimli::Operation::UnsignedConstant { value } => value,
            gimli::Operation::AddressIndex { index }
            | gimli::Operation::ConstantIndex { index } => {
                self.dwarf.address(&self.unit, index).ok()?
            }
            _ => return None,
        };
        let is_local = matches!(operations.next().ok()??, gimli::Operation::TLS);
        (is_local && operations.next().ok()?.is_none()).then_some(offset)
    }
}

/// Is this one of the versions of C?
pub(crate) fn is_c(language: Option<DwLang>) -> bool {
    matches!(
        language,
        Some(
            gimli::DW_LANG_C
                | gimli::DW_LANG_C89
                | gimli::DW_LANG_C99
                | gimli::DW_LANG_C11
                | gimli::DW_LANG_C17
        )
    )
}

fn last_child_before<'d>(
    unit: &Unit<'d>,
    parent: UnitOffset,
    target: UnitOffset,
) -> Option<DebuggingInformationEntry<Slice<'d>>> {
    let mut tree = unit.unit.entries_tree(Some(parent)).ok()?;
    let mut children = tree.root().ok()?.children();
    let mut last = None;
    while let Ok(Some(child)) = children.next() {
        if child.entry().offset() > target {
            break;
        }
        last = Some(child.entry().clone());
    }
    last
}
